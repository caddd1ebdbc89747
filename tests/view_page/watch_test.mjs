// The page of tacho watch --view on the stand-in for CUDA's driver: what it shows is what the watch says. TACHO_PICTURES names a
// folder for pictures of it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { build, folder, open, start, stop } from './harness.mjs';

const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
const driver = path.join(build, 'tests/fake_cuda');
const env = {
  ...process.env,
  LD_LIBRARY_PATH: path.join(driver, 'driver'),
  TACHO_NVML: path.join(build, 'tests/libstandin_nvml.so'),
  TACHO_AMD_SMI: '',
  TACHO_ROCM_SMI: '',
};
const started = [];
before(start);
after(async () => {
  for (const each of started) each.kill('SIGKILL');
  await stop();
});

let number = 0;
/** tacho watch with these words; its first address, and how to wait for its end. */
async function watch(options, ...program) {
  const file = path.join(folder, `watch${++number}.jsonl`);
  const process = spawn(
    tacho,
    ['watch', ...options, '--output-format', 'json', '--interval', '60', '-o', file, ...program],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env,
    },
  );
  started.push(process);
  const ended = new Promise((done) => process.on('exit', done));
  let text = '';
  const address = await new Promise((done, failed) => {
    process.stderr.on('data', (part) => {
      text += part;
      const found = /(http:\/\/[^\s]+)/.exec(text);
      if (found !== null) done(found[1]);
    });
    process.on('exit', (code) => failed(new Error(`tacho watch ended with ${code}: ${text}`)));
  });
  const last = async () => {
    await ended;
    return JSON.parse(readFileSync(file, 'utf8').trim().split('\n').at(-1));
  };
  return { address, process, last };
}
const long = (launches, seconds) => ['--', path.join(driver, 'fake_long'), String(launches), String(seconds)];
const ready = () => window.tachoWatch?.now !== null && window.tachoWatch?.launches.length > 1;
const shot = async (page, name) => {
  if (process.env.TACHO_PICTURES !== undefined)
    await page.screenshot({ path: path.join(process.env.TACHO_PICTURES, `${name}.png`) });
};
/** A table of the page: an object of cells by heading for each row. */
const table = (page, section) =>
  page.locator(`section.${section} table`).evaluate((of) => {
    const heads = [...of.querySelectorAll('th')].map((head) => head.textContent.trim());
    return [...of.querySelectorAll('tbody tr')].map((row) =>
      Object.fromEntries([...row.querySelectorAll('td')].map((cell, i) => [heads[i], cell.textContent.trim()])),
    );
  });
const whole = (text) => Number(text.replaceAll(',', ''));

test('one watch, from its start to its end', async () => {
  const one = await watch(['--view'], ...long(5000000, 40));
  const { page, close } = await open(one.address, {
    ready,
    allow: ['ERR_'],
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
  });
  const early = await table(page, 'work');
  assert.equal(early.length, 20, 'the first 20 of 130');
  assert.match(early[0].Kernel, /^(hot|graph)/);
  // It goes on by itself, and shares are of the time since the moment before.
  const before = await page.evaluate(() => window.tachoWatch.now.seconds);
  await page.waitForFunction((then) => window.tachoWatch.now.seconds > then + 1.5, before);
  const shares = (await table(page, 'work')).map((row) => Number(row['Now %']) || 0);
  assert.ok(shares.reduce((sum, share) => sum + share, 0) <= 110 && shares[0] > 5, `${shares}`);
  const rate = await page.evaluate(() => window.tachoWatch.change.pace.launches);
  assert.ok(rate > 20000, `${rate} launches a second of some 125,000`);
  const gpus = await table(page, 'gpus');
  assert.equal(gpus.length, 2);
  assert.match(gpus[0].Busy, /^\d+ %$/);
  assert.match(gpus[0].Temperature, /^\d+ °C$/);
  assert.match(await page.locator('.cost').textContent(), /^Cost of watching: .*of the pace|^Cost of watching: host/);
  // The program's own threads, where the kernel lets tacho look.
  if (await page.evaluate(() => !window.tachoWatch.now.notes.some((note) => note.includes('sample the host')))) {
    await page.waitForFunction(() => window.tachoWatch.now.host_code.samples > 0);
    const code = await table(page, 'hostcode');
    assert.ok(
      code.length > 0 && code.every((line) => Number(line['%']) <= 100 && line.Place !== ''),
      JSON.stringify(code),
    );
  }
  await shot(page, 'watch-light-1280');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);

  // Orders, a filter, a mark, and holding still.
  await page.locator('section.work th button', { hasText: 'Launches' }).click();
  const counts = (await table(page, 'work')).map((row) => whole(row.Launches));
  assert.deepEqual(
    counts,
    [...counts].sort((a, b) => b - a),
  );
  await page.getByLabel('filter kernels').fill('RARE10');
  assert.ok((await table(page, 'work')).every((row) => row.Kernel.startsWith('rare10')));
  await page.getByLabel('filter kernels').fill('');
  await page.keyboard.press('Tab');
  await page.locator('h1').click();
  await page.keyboard.press('m');
  await page.waitForFunction(() => window.tachoWatch.marked && window.tachoWatch.change.seconds > 1.5);
  assert.match(await page.locator('header').textContent(), /since /);
  await page.keyboard.press('m');
  await page.keyboard.press('p');
  const held = await page.evaluate(() => window.tachoWatch.now.seconds);
  await new Promise((done) => setTimeout(done, 1500));
  assert.equal(await page.evaluate(() => window.tachoWatch.now.seconds), held);
  await page.keyboard.press('p');

  // After the end the last numbers stay, and the page says of when they are.
  const last = await one.last();
  await page.waitForFunction(() => window.tachoWatch.fault !== '');
  assert.match(await page.getByRole('alert').textContent(), /has ended.*This is the state of \d\d:\d\d:\d\d\./s);
  const sums = new Map();
  for (const row of last.rows) if (row.kind === 'kernel') sums.set(row.name, (sums.get(row.name) ?? 0) + row.count);
  await page.locator('section.work > button.link').click();
  const all = await table(page, 'work');
  for (const row of all.filter((each) => each.Kernel.startsWith('hot'))) {
    const name = row.Kernel.split(' ')[0];
    assert.ok(whole(row.Launches) <= sums.get(name) && whole(row.Launches) > 0.7 * sums.get(name), row.Kernel);
  }
  await close();
});

test('dark and narrow', async () => {
  const one = await watch(['--view'], ...long(2000000, 6));
  const { page, close } = await open(one.address, {
    ready,
    allow: ['ERR_'],
    viewport: { width: 800, height: 900 },
    colorScheme: 'dark',
  });
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  // No table is wider than the page.
  const inside = await page
    .locator('table')
    .evaluateAll((tables) => tables.map((each) => each.getBoundingClientRect().right <= innerWidth));
  assert.ok(inside.length >= 3 && inside.every(Boolean), `${inside}`);
  await shot(page, 'watch-dark-800');
  await page.getByLabel('colours').click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
  await close();
  one.process.kill('SIGTERM');
});

test('several watches, one of which goes', async () => {
  const a = await watch(['--prometheus', '127.0.0.1:0'], ...long(600000, 30));
  const b = await watch(['--prometheus', '127.0.0.1:0'], ...long(300000, 30));
  const sum = await watch(['--view', '--from', `${a.address},${b.address}`]);
  const { page, close } = await open(sum.address, {
    ready,
    allow: ['ERR_'],
    viewport: { width: 1280, height: 800 },
    colorScheme: 'dark',
  });
  const hosts = await table(page, 'hosts');
  assert.equal(hosts.length, 2);
  assert.deepEqual(
    hosts.map((host) => host.Answers),
    ['yes', 'yes'],
  );
  const kernels = await table(page, 'work');
  assert.equal(kernels.find((row) => row.Kernel.startsWith('hot1_')).Hosts, '2');
  assert.equal((await table(page, 'gpus')).length, 4);
  await shot(page, 'watch-hosts-dark-1280');
  b.process.kill('SIGKILL');
  await page.waitForFunction(() => window.tachoWatch.now.hosts[1].problem !== '');
  await page.waitForFunction(() => document.querySelector('tr.silent')?.textContent.includes('not for'));
  await shot(page, 'watch-hosts-silent-1280');
  assert.match(await page.locator('.notes').textContent(), /has not answered for .*its numbers are those of then\./);
  sum.process.kill('SIGINT');
  const last = await sum.last();
  assert.equal(last.hosts.length, 2);
  await close();
});
