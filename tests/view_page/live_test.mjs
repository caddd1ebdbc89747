// The page of tacho trace --view while the program runs: it follows the recording, holds still while something is selected, and ends
// with what tacho query says about the finished file.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { build, folder, open, start, stop } from './harness.mjs';

const tacho = process.env.TACHO ?? path.join(build, 'bin/tacho');
const program = path.join(build, 'tests/targets/opencl_cases');
if (!existsSync(program)) {
  console.log('SKIPPED: the OpenCL programs are not built (no libOpenCL)');
  process.exit(77);
}

// A test that fails leaves its program behind, for which node would wait.
const started = [];
before(start);
after(async () => {
  for (const each of started) each.kill('SIGKILL');
  await stop();
});

test('a run is shown while it is recorded', async () => {
  const file = path.join(folder, 'live.tacho');
  const traced = spawn(tacho, ['trace', '--view', '-q', '-o', file, '--', program, 'killed', '20000'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.push(traced);
  const ended = new Promise((done) => traced.on('exit', done));
  let text = '';
  const address = await new Promise((done, failed) => {
    traced.stderr.on('data', (part) => {
      text += part;
      const found = /(http:\/\/\S+token=\S+) shows/.exec(text);
      if (found !== null) done(found[1]);
    });
    traced.on('exit', (code) => failed(new Error(`tacho trace ended with ${code}: ${text}`)));
  });
  const { page: on, close } = await open(address, { hash: 'view=timeline' });
  const state = () =>
    on.evaluate(() => ({
      generation: window.tacho.app.current.generation,
      events: window.tacho.app.current.events,
      length: window.tacho.app.length,
      to: window.tacho.app.to,
      live: window.tacho.app.current.live,
      newer: window.tacho.app.newer,
    }));
  await on.waitForFunction(() => window.tacho?.app.current?.live === true, undefined, { timeout: 60000 });
  const first = await state();
  await on.waitForFunction((before) => window.tacho.app.current.generation > before, first.generation, {
    timeout: 60000,
  });
  const second = await state();
  assert.ok(second.events > first.events);
  await on.waitForFunction(
    () => Math.abs(window.tacho.app.to - window.tacho.app.length) < 1 && window.tacho.app.tiles.settled,
    undefined,
    { timeout: 30000 },
  );
  assert.match(await on.locator('.live').textContent(), /^recording, as of \d\d:\d\d:\d\d$/);

  // What is selected belongs to this state: it stays, though newer ones are there.
  await on.evaluate(() => window.tacho.app.choose([0, window.tacho.app.length / 2], true));
  await on.waitForFunction(() => window.tacho.app.tables !== null && window.tacho.app.newer, undefined, {
    timeout: 60000,
  });
  const held = await state();
  const calls = await on.evaluate(() => window.tacho.app.tables.calls[0].count);
  await new Promise((done) => setTimeout(done, 1500));
  assert.equal((await state()).generation, held.generation);
  assert.match(await on.locator('.live').textContent(), /held/);
  await on.evaluate(() => window.tacho.app.choose([0, window.tacho.app.length / 2 + 1], true));
  await on.waitForFunction(() => !window.tacho.app.tablesBusy);
  assert.ok(
    (await on.evaluate(() => window.tacho.app.tables.calls[0].count)) >= calls,
    'the state is still there to be asked',
  );
  await on.evaluate(() => window.tacho.app.choose(null, true));
  await on.waitForFunction((before) => window.tacho.app.current.generation > before, held.generation, {
    timeout: 60000,
  });

  await on.waitForFunction(() => window.tacho.app.current.live === false, undefined, { timeout: 120000 });
  const rows = (sql) =>
    JSON.parse(execFileSync(tacho, ['query', file, sql, '--output-format', 'json'], { maxBuffer: 1 << 26 })).rows;
  const [[whole]] = rows(
    'SELECT ' +
      ['api', 'dispatch', 'copy', 'fill', 'marker', 'sync', 'overhead', 'allocation', 'sample', 'reading']
        .map((each) => `(SELECT count(*) FROM tacho.${each})`)
        .join(' + '),
  );
  assert.equal((await state()).events, whole);
  await on.waitForFunction(
    () => {
      const { overview, overviewOf, current } = window.tacho.app;
      return overviewOf === current.generation && overview.provisional !== true && overview.findings_ready !== false;
    },
    undefined,
    { timeout: 60000 },
  );
  const shown = await on.evaluate(() => window.tacho.app.overview.kernels.map((each) => [each.text, each.count]));
  assert.deepEqual(
    shown,
    rows('SELECT k.name, count(*) FROM tacho.dispatch d JOIN tacho.kernel k ON k.id = d.dim GROUP BY 1'),
  );
  assert.equal(await on.locator('.live').count(), 0);
  await close?.();
  traced.kill('SIGINT');
  assert.equal(await ended, 137);
});

test('the flame graph follows the recording', async () => {
  const file = path.join(folder, 'flame.tacho');
  const traced = spawn(tacho, ['trace', '--view', '-q', '-o', file, '--', program, 'killed', '20000'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.push(traced);
  let text = '';
  const address = await new Promise((done, failed) => {
    traced.stderr.on('data', (part) => {
      text += part;
      const found = /(http:\/\/\S+token=\S+) shows/.exec(text);
      if (found !== null) done(found[1]);
    });
    traced.on('exit', (code) => failed(new Error(`tacho trace ended with ${code}: ${text}`)));
  });
  const { page: on, close } = await open(address, { hash: 'view=overview' });
  await on.waitForFunction(() => window.tacho?.app.current?.live === true, undefined, { timeout: 60000 });
  await on.evaluate(() => (window.tacho.app.view = 'flame'));
  const grown = (before) =>
    on.waitForFunction((least) => (window.tacho.panel()?.all?.()?.[0]?.gpu[0] ?? 0) > least, before, {
      timeout: 60000,
    });
  await grown(0);
  await grown(await on.evaluate(() => window.tacho.panel().all()[0].gpu[0]));
  await on.waitForFunction(() => window.tacho.app.current.live === false, undefined, { timeout: 120000 });
  const rows = (sql) =>
    JSON.parse(execFileSync(tacho, ['query', file, sql, '--output-format', 'json'], { maxBuffer: 1 << 26 })).rows;
  const whole = ['dispatch', 'copy', 'fill'].reduce(
    (sum, table) => sum + rows(`SELECT coalesce(sum(duration), 0) FROM tacho.${table} WHERE duration >= 0`)[0][0],
    0,
  );
  await on.waitForFunction(
    (total) => window.tacho.panel().settled() && window.tacho.panel().all()[0].gpu[0] === total,
    whole,
    { timeout: 60000 },
  );
  await close?.();
  traced.kill('SIGINT');
});
