"""Multiplies two random matrices on the GPU: a short PyTorch program to trace.

    python3 matrix_mult.py --x_shape 1000 500 --w_shape 500 500
"""
import argparse
import sys


def parse_arguments():
    parser = argparse.ArgumentParser(description="Multiply two random matrices on the GPU.")
    parser.add_argument("--x_shape", nargs=2, type=int, default=[1000, 500], metavar=("N", "M"),
                        help="shape of the input matrix")
    parser.add_argument("--w_shape", nargs=2, type=int, default=[500, 500], metavar=("J", "K"),
                        help="shape of the weight matrix")
    parser.add_argument("--device", default="cuda", help="torch device (default: cuda)")
    arguments = parser.parse_args()
    if arguments.x_shape[1] != arguments.w_shape[0]:
        parser.error(f"a {arguments.x_shape[0]}x{arguments.x_shape[1]} matrix cannot be multiplied by a "
                     f"{arguments.w_shape[0]}x{arguments.w_shape[1]} one: M must equal J")
    return arguments


def main():
    arguments = parse_arguments()
    try:
        import torch
    except ImportError:
        sys.exit("matrix_mult.py: this Python has no torch; use one that has")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("matrix_mult.py: torch sees no CUDA device; --device cpu multiplies on the CPU")
    x = torch.randn(*arguments.x_shape)
    weights = torch.randn(*arguments.w_shape)
    product = x.to(arguments.device) @ weights.to(arguments.device)
    print(f"Shape of input data matrix: {arguments.x_shape}, weight matrix: {arguments.w_shape}, "
          f"result matrix:{product.shape}")
    print(product)


if __name__ == "__main__":
    main()
