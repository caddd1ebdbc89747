// The data of a self-contained page (src/view/page/packed.h): gzip in base64, and in it columns of numbers and a JSON.

/** Where columns lie, as [offset, bytes]; one that is absent holds zeros. */
export type Columns = Record<string, [number, number] | undefined>;

const kMagic = 0x424d4554; // 'TEMB'
const kForm = 2;

async function inflate(text: string): Promise<Uint8Array> {
  const packed = atob(text.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class Packed {
  private constructor(
    readonly json: unknown,
    private readonly bytes: Uint8Array,
  ) {}

  /** Unpacks the text of the page; throws a sentence where it is no such data. */
  static async open(text: string): Promise<Packed> {
    const bytes = await inflate(text);
    const view = new DataView(bytes.buffer);
    if (bytes.length < 12 || view.getUint32(0, true) !== kMagic) throw new Error('The data in this page is damaged.');
    if (view.getUint32(4, true) !== kForm)
      throw new Error('The data in this page has a form that this page does not know.');
    const end = bytes.length - 4;
    const begin = end - view.getUint32(end, true);
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes.subarray(begin, end)));
    return new Packed(json, bytes.subarray(8, begin));
  }

  /** Unsigned LEB128 numbers up to 2^53. */
  integers(columns: Columns, name: string, count: number): Float64Array {
    const values = new Float64Array(count);
    const place = columns[name];
    if (place === undefined) return values;
    let at = place[0];
    const end = place[0] + place[1];
    for (let i = 0; i < count; ++i) {
      let value = 0;
      let factor = 1;
      for (;;) {
        if (at >= end) throw new Error('The data in this page is damaged: a column ends early.');
        const byte = this.bytes[at++];
        value += (byte & 127) * factor;
        if (byte < 128) break;
        factor *= 128;
      }
      values[i] = value;
    }
    return values;
  }

  /** Numbers that are stored as zigzag differences, each from the one before it. */
  differences(columns: Columns, name: string, count: number): Float64Array {
    const values = this.integers(columns, name, count);
    let last = 0;
    for (let i = 0; i < count; ++i) {
      const step = values[i];
      values[i] = last += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
    }
    return values;
  }

  doubles(columns: Columns, name: string, count: number): Float64Array {
    const values = new Float64Array(count);
    const place = columns[name];
    if (place === undefined) return values;
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + place[0], place[1]);
    for (let i = 0; i < count; ++i) values[i] = view.getFloat64(i * 8, true);
    return values;
  }
}
