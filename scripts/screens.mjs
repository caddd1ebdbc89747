// The pages of scripts/screens.py: node scripts/screens.mjs SHOTS.json OUT, in the folder of the files. Prints one line a fault.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { build, folder, open, start, stop } from '../tests/view_page/harness.mjs';

const [shots, out] = [JSON.parse(readFileSync(process.argv[2], 'utf8')), process.argv[3]];
const tacho = path.join(build, 'bin/tacho');
const servers = [];
const opened = new Map();
// One file becomes a self-contained page; several are compared by a server.
async function address(files) {
  const key = files.join(' ');
  if (opened.has(key)) return opened.get(key);
  if (files.length === 1) {
    opened.set(key, path.join(folder, `${opened.size}.html`));
    execFileSync(tacho, ['view', files[0], '-o', opened.get(key)]);
  } else {
    const child = spawn(tacho, ['view', ...files, '--no-open', '--port', '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
    servers.push(child);
    opened.set(
      key,
      await new Promise((done, failed) => {
        child.stdout.once('data', (text) => done(String(text).trim()));
        child.once('exit', (code) => failed(new Error(`tacho view ended with ${code}`)));
      }),
    );
  }
  return opened.get(key);
}

await start();
for (const shot of shots) {
  const { page, faults, close } = await open(await address(shot.files), {
    hash: shot.hash,
    colorScheme: shot.scheme,
    viewport: { width: shot.width, height: shot.height },
  });
  await page.waitForTimeout(1200);
  await page.screenshot({ path: path.join(out, `${shot.name}.png`) });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  for (const fault of faults) console.log(`${shot.name}: ${fault}`);
  if (wide > 0) console.log(`${shot.name}: the page is ${wide} px wider than its window`);
  await close().catch((error) => console.log(`${shot.name}: ${error.message.split('\n')[0]}`));
}
servers.forEach((each) => each.kill('SIGINT'));
await stop();
