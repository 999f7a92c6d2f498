// The rules of testdata/headers.json hold for the propagator, and for none of the wrong ones.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import * as api from '@opentelemetry/api';
import { CompositePropagator, suppressTracing, W3CTraceContextPropagator } from '@opentelemetry/core';
import { XTraceIdPropagator } from '../propagator.js';
import { wrong } from './wrong.js';

const { ROOT_CONTEXT, trace } = api;
const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const json = read('../../../testdata/headers.json');
const { ids } = JSON.parse(json);
const expand = (text) => text.replace(/\$([A-Z])/g, (_, name) => ids[name]);
const { cases } = JSON.parse(expand(json));

const getter = { get: (carrier, key) => carrier[key], keys: Object.keys };
const setter = { set: (carrier, key, value) => { carrier[key] = value; } };

function propagatorOf(Propagator, { encoding, b3TraceID64, traceContext, dropped, ...options } = {}) {
  const ours = new Propagator({ ...options, b3Encoding: encoding, b3TraceId64: b3TraceID64 });
  const w3c = new W3CTraceContextPropagator();
  const propagators = { first: [w3c, ours], last: [ours, w3c] }[traceContext] ?? [ours];
  return new CompositePropagator({ propagators });
}

function injected(propagator, context) {
  const headers = {};
  propagator.inject(context, headers, setter);
  delete headers.traceparent;
  return headers;
}

function check(Propagator, { options, incoming, ...rule }) {
  const propagator = propagatorOf(Propagator, options);
  const headers = Object.fromEntries(Object.entries(incoming).map(([k, v]) => [k.toLowerCase(), v]));
  const { extracted, ...want } = rule.elsewhere ?? rule;
  let context = propagator.extract(ROOT_CONTEXT, headers, getter);
  const span = trace.getSpanContext(context);
  const sampled = extracted?.sampled === true;
  assert.deepEqual(
    span && [span.traceId, span.spanId, span.isRemote, span.traceFlags],
    extracted ? [extracted.traceId, extracted.spanId, true, Number(sampled)] : undefined,
  );
  assert.deepEqual(injected(propagator, context), want.forwarded);
  const traceId = extracted?.traceId ?? ids.N;
  const traceFlags = Number(sampled && !options?.dropped);
  context = trace.setSpanContext(context, { traceId, spanId: ids.O, traceFlags });
  assert.deepEqual(injected(propagator, context), want.injected);
}

for (const rule of cases) it(rule.name, () => check(XTraceIdPropagator, rule));

it('the same span of another propagator stays', () => {
  const w3c = { traceId: ids.T, spanId: ids.S, isRemote: true, traceFlags: 3, traceState: api.createTraceState('v=1') };
  for (const b3 of ['$T-$S', '$T-$S-1', '$H-$S-1'].map(expand)) {
    const context = new XTraceIdPropagator().extract(
      trace.setSpanContext(ROOT_CONTEXT, w3c), { 'x-trace-id': ids.T, b3 }, getter);
    assert.deepEqual(trace.getSpanContext(context), w3c);
  }
});

it('the last request decides', () => {
  const propagator = new XTraceIdPropagator();
  let context = ROOT_CONTEXT;
  for (const b3 of ['$T-$S-d', '$T-$P-0'].map(expand)) context = propagator.extract(context, { b3 }, getter);
  assert.equal(injected(propagator, context)['x-b3-sampled'], '0');

  context = trace.setSpanContext(ROOT_CONTEXT, { traceId: ids.T, spanId: ids.O, traceFlags: 1 });
  assert.equal(propagator.extract(context, {}, getter), context);
  assert.deepEqual(injected(propagator, suppressTracing(context)), {});
  context = propagator.extract(context, { b3: expand('$T-$S') }, getter);
  assert.equal(trace.getSpanContext(context).traceFlags, 0);
});

it('fields are what is injected', () => {
  for (const b3Encoding of ['multi', 'single', 'both', 'none']) {
    const propagator = new XTraceIdPropagator({ b3Encoding });
    const written = ['$T-$S-d', '$T-$S-0'].map(expand).flatMap((b3) =>
      Object.keys(injected(propagator, propagator.extract(ROOT_CONTEXT, { b3 }, getter))));
    assert.deepEqual(propagator.fields().sort(), [...new Set(written)].sort());
  }
});

it('refuses bad names of headers', () => {
  for (const header of ['a b', 'x:y', 'é', 'b3', 'X-B3-TraceId', 'Traceparent']) {
    assert.throws(() => new XTraceIdPropagator({ header }), /TypeError: traceflake: header is ".*": want a name/);
  }
  for (const header of ['X-Request-Id', 'x_trace', "!#$%&'*+-.^_`|~"]) {
    assert.ok(new XTraceIdPropagator({ header }).fields().includes(header));
  }
});

it('a decision is no name of a property', () => {
  const headers = { 'x-b3-traceid': ids.T, 'x-b3-spanid': ids.S, 'x-b3-sampled': 'constructor' };
  assert.equal(new XTraceIdPropagator().extract(ROOT_CONTEXT, headers, getter), ROOT_CONTEXT);
});

it('wrong propagators are caught', (t) => {
  const source = read('../propagator.js').replace(/^import .*$/m, '').replace('export ', '');
  const load = (text) => new Function('api',
    `const { createContextKey, isSpanContextValid, trace, TraceFlags } = api; ${text}
    return XTraceIdPropagator;`)(api);
  for (const rule of cases) check(load(source), rule);
  const survivors = [];
  for (const [name, ...changes] of wrong) {
    let mistake = source;
    while (changes.length) {
      const [from, to] = changes.splice(0, 2);
      const next = mistake.replaceAll(from, () => to);
      assert.notEqual(next, mistake, `${name}: nothing was replaced`);
      mistake = next;
    }
    const Propagator = load(mistake);
    if (!cases.some((rule) => {
      try {
        check(Propagator, rule);
        return false;
      } catch (err) {
        if (err.code !== 'ERR_ASSERTION') throw new Error(name, { cause: err });
        return true;
      }
    })) survivors.push(name);
  }
  assert.deepEqual(survivors, []);
  t.diagnostic(`${wrong.length} wrong propagators`);
});
