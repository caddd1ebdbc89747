// Colours of names: the hue is that of the name's kind, varied by the name, in one of four lightnesses and with one chroma (OKLCh),
// so that kinds are told apart in every view and no name shouts.

import type { NameKind } from './source';

/** 0xAABBGGRR, as a Uint32Array over ImageData wants it on little-endian machines (all that run browsers are). */
export type Pixel = number;

const channel = (x: number): number => {
  const gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * Math.max(x, 0) ** (1 / 2.4) - 0.055;
  return Math.max(0, Math.min(255, Math.round(gamma * 255)));
};

/** OKLCh to sRGB after Ottosson's definition of OKLab; hue in degrees. */
export function oklch(lightness: number, chroma: number, hue: number): [number, number, number] {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

export const pixel = (r: number, g: number, b: number): Pixel => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
export const css = (colour: Pixel): string => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

/** `over` on `under` with alpha of 256. */
export function blend(under: Pixel, over: Pixel, alpha: number): Pixel {
  const keep = 256 - alpha;
  const redBlue = (((under & 0xff00ff) * keep + (over & 0xff00ff) * alpha) >>> 8) & 0xff00ff;
  const green = (((under & 0xff00) * keep + (over & 0xff00) * alpha) >>> 8) & 0xff00;
  return (0xff000000 | redBlue | green) >>> 0;
}

const fromHex = (hex: string): Pixel =>
  pixel(parseInt(hex.slice(1, 3), 16), parseInt(hex.slice(3, 5), 16), parseInt(hex.slice(5, 7), 16));

/** Names have a hue and a lightness: hue + 360 * lightness, as src/view/index/names.cpp gives them. */
export const kColours = 1440;
/** The middle of the hues of each kind, and what its names are to a reader. */
export const kKinds: Record<NameKind, { hue: number; title: string }> = {
  kernel: { hue: 156, title: 'kernels' },
  collective: { hue: 295, title: 'collectives, messages' },
  copy: { hue: 60, title: 'copies, fills' },
  api: { hue: 205, title: 'API calls' },
  operator: { hue: 100, title: 'operators' },
  host: { hue: 254, title: "the program's own code" },
  marker: { hue: 346, title: 'ranges, marks' },
  wait: { hue: 24, title: 'waits, memory' },
};

/** What the canvases draw with; the same values stand in view.css for the rest of the page. */
export interface Theme {
  dark: boolean;
  back: Pixel;
  /** Where a lane is empty. */
  lane: Pixel;
  group: Pixel;
  grid: Pixel;
  outside: Pixel;
  unknown: Pixel;
  faded: Pixel;
  text: string;
  muted: string;
  line: string;
  accent: string;
  accentPixel: Pixel;
  label: string;
  failed: string;
  busy: string;
  copies: string;
  exposed: string;
  comm: string;
  cpu: string;
  /** Of the program's own code. */
  host: string;
  /** By kind of name, as bars and legends have them. */
  kinds: Record<NameKind, string>;
  names: Pixel[];
}

function makeTheme(dark: boolean): Theme {
  const lightness = dark ? [0.62, 0.68, 0.74, 0.65] : [0.74, 0.79, 0.69, 0.76];
  const names = Array.from({ length: kColours }, (_, i) =>
    pixel(...oklch(lightness[Math.floor(i / 360)], dark ? 0.095 : 0.09, i % 360)),
  );
  const kinds = Object.fromEntries(
    Object.entries(kKinds).map(([kind, { hue }]) => [kind, css(pixel(...oklch(dark ? 0.66 : 0.7, 0.1, hue)))]),
  ) as Record<NameKind, string>;
  return dark
    ? {
        dark,
        names,
        kinds,
        back: fromHex('#14171b'),
        lane: fromHex('#191c21'),
        group: fromHex('#1d2127'),
        grid: fromHex('#22262c'),
        outside: fromHex('#101215'),
        unknown: fromHex('#5b6470'),
        faded: fromHex('#33383f'),
        text: '#dde2e8',
        muted: '#8f99a4',
        line: '#2c3138',
        accent: '#6aa9f7',
        accentPixel: fromHex('#6aa9f7'),
        label: '#0d1013',
        failed: '#ff6b5e',
        busy: '#5aa578',
        copies: '#5f93d6',
        exposed: '#e0954f',
        comm: '#8f7fc4',
        cpu: kinds.api,
        host: kinds.host,
      }
    : {
        dark,
        names,
        kinds,
        back: fromHex('#ffffff'),
        lane: fromHex('#f8f9fa'),
        group: fromHex('#f1f3f5'),
        grid: fromHex('#ebeef1'),
        outside: fromHex('#eceef0'),
        unknown: fromHex('#b6bdc6'),
        faded: fromHex('#dfe3e7'),
        text: '#1d2329',
        muted: '#66707b',
        line: '#dfe3e8',
        accent: '#1a5fb4',
        accentPixel: fromHex('#1a5fb4'),
        label: '#14181d',
        failed: '#c4261c',
        busy: '#58a878',
        copies: '#5b91d4',
        exposed: '#de8a3c',
        comm: '#9b8ad0',
        cpu: kinds.api,
        host: kinds.host,
      };
}

const themes = [makeTheme(false), makeTheme(true)];
export const themeOf = (dark: boolean): Theme => themes[dark ? 1 : 0];
