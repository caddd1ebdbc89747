! Calls of MPI from Fortran, of the modern binding.
program fortran
  use mpi_f08
  implicit none
  integer :: rank, ranks, values(6)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  values = rank
  call MPI_Allreduce(MPI_IN_PLACE, values, 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Isend(values, 5, MPI_INTEGER, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, request)
  call MPI_Recv(values, 6, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Finalize()
end program
