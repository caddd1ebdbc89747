// Builds the pages, each into one HTML file: script and style stand in the page, and the page's policy allows exactly them.
// `vite build` makes index.html, the page of analyze; `vite build --mode view` makes view.html, the page of view; `--mode flame`
// makes flame.html, `--mode watch` watch.html, the page of watch.
import { createHash } from 'node:crypto';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

const sha256 = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/**
 * Puts what Vite bundled into the HTML. Nothing is loaded from anywhere: the policy forbids it. The server of view.html and
 * watch.html replaces `connect-src 'none'` by its own origin.
 */
function oneFile(file: string): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      let html = '';
      let script = '';
      let style = '';
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === 'chunk') {
          if (script !== '') this.error(`one chunk expected, ${name} is another`);
          script = part.code.trim().replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
        } else if (name.endsWith('.css')) {
          style += part.source.toString().trim();
        } else if (name.endsWith('.html')) {
          html = part.source.toString();
          continue;
        } else {
          this.error(`${name} would not be part of the page`);
        }
        delete bundle[name];
      }
      // The script comes last, so that the data before it is there when it runs.
      html = html.replace(/\s*<(script|link)\b[^>]*(src|href)="[^"]*"[^>]*>(<\/script>)?/g, '');
      const policy = `default-src 'none'; script-src ${sha256(script)}; style-src 'unsafe-inline'; img-src data:; ${file === 'view.html' || file === 'watch.html' ? "connect-src 'none'; " : ''}base-uri 'none'; form-action 'none'`;
      const put = (place: string, text: string) => {
        if (html.split(place).length !== 2) this.error(`${file} must have one ${place}`);
        html = html.replace(place, () => text);
      };
      put('<!--policy-->', `<link rel="icon" href="data:,">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
      put('<!--style-->', `<style>${style}</style>`);
      put('<!--script-->', `<script type="module">${script}</script>`);
      const page = bundle[file];
      if (page?.type === 'asset') page.source = html;
    },
  };
}

export default defineConfig(({ mode }) => {
  const file = ['view', 'flame', 'watch'].includes(mode) ? `${mode}.html` : 'index.html';
  return {
    plugins: [svelte(), oneFile(file)],
    build: {
      target: 'es2022',
      modulePreload: false,
      cssCodeSplit: false,
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      emptyOutDir: file === 'index.html',
      rollupOptions: { input: file },
    },
  };
});
