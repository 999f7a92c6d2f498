// The header x-trace-id alongside B3, for OpenTelemetry in JavaScript. The rules:
// https://github.com/traceflake/traceflake/blob/main/docs/headers.md
import { createContextKey, isSpanContextValid, trace, TraceFlags } from '@opentelemetry/api';

const B3 = 'b3';
const TRACE_ID = 'x-b3-traceid';
const SPAN_ID = 'x-b3-spanid';
const PARENT_SPAN_ID = 'x-b3-parentspanid';
const SAMPLED = 'x-b3-sampled';
const FLAGS = 'x-b3-flags';

// Of B3: '0', '1', 'd' (debug: sampled, and services must not sample it away) or undecided.
const UNDECIDED = '';
const DECISIONS = new Map([['', UNDECIDED], ['0', '0'], ['false', '0'], ['1', '1'], ['true', '1']]);

const ZEROS = '0'.repeat(16);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TAKEN = /^(traceparent|tracestate|baggage|b3|x-b3-.*)$/i;

// What a span context cannot express of a decision: that it is missing, or the debug flag. It
// belongs to one trace: one that begins here does not have it.
const STATE = createContextKey('traceflake-b3');

// The SDK's key, of which @opentelemetry/core has a function.
const SUPPRESSED = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

const flag = [false, (value) => typeof value === 'boolean', 'true or false'];

// Of each option the default, whether a value is possible, and which are.
const OPTIONS = {
  header: ['x-trace-id', (value) => TOKEN.test(value) && !TAKEN.test(value), 'a name for a header of its own'],
  b3Encoding: ['multi', (value) => /^(multi|single|both|none)$/.test(value), 'multi, single, both or none'],
  b3TraceId64: flag,
  deferredSampled: flag,
  dashes: flag,
};

// optionsOf returns all options. Those without a value are unset.
function optionsOf(options) {
  const all = Object.fromEntries(Object.entries(OPTIONS).map(([name, [unset]]) => [name, unset]));
  for (let [name, value] of Object.entries(options)) {
    if (!Object.keys(OPTIONS).includes(name)) {
      throw new TypeError(`traceflake: there is no option ${name}: want one of ${Object.keys(OPTIONS).join(', ')}`);
    }
    if (value === undefined || value === null || value === '') continue;
    if (name === 'b3Encoding') value = String(value).toLowerCase();
    const [, possible, want] = OPTIONS[name];
    if (!possible(value)) {
      throw new TypeError(`traceflake: ${name} is ${JSON.stringify(value)}: want ${want}`);
    }
    all[name] = value;
  }
  return all;
}

export class XTraceIdPropagator {
  constructor(options = {}) {
    this._options = optionsOf(options);
    const { b3Encoding } = this._options;
    this._single = ['single', 'both'].includes(b3Encoding);
    this._multi = ['multi', 'both'].includes(b3Encoding);
  }

  fields() {
    return [
      this._options.header,
      ...(this._single ? [B3] : []),
      ...(this._multi ? [TRACE_ID, SPAN_ID, SAMPLED, FLAGS] : []),
    ];
  }

  extract(context, carrier, getter) {
    const here = trace.getSpanContext(context);
    // By a propagator that is listed before, such as W3C's.
    let found = here?.isRemote && isSpanContextValid(here) ? here : undefined;
    let { span, decision } = readB3(carrier, getter);
    const id = this._traceId(list(getter.get(carrier, this._options.header)));
    if (id && joins(span, id)) {
      span = { ...span, traceId: id };
      if (joins(found, id)) found = { ...found, traceId: id };
    } else if (id && joins(found, id)) {
      span = found = { ...found, traceId: id };
      decision = decisionOf(span);
    }
    if (!span) return context;
    if (found?.traceId === span.traceId) {
      if (found.spanId === span.spanId) span = found; // W3C's has a tracestate and the random flag
      else if (decision === UNDECIDED) span = { ...span, traceFlags: found.traceFlags };
      decision ||= decisionOf(span);
    }
    if (decision === UNDECIDED && this._options.deferredSampled) {
      span = { ...span, traceFlags: TraceFlags.SAMPLED };
      decision = '1';
    }
    context = context.setValue(STATE, { traceId: span.traceId, decision });
    return trace.setSpanContext(context, span);
  }

  // _traceId returns the one ID in these values, or undefined.
  _traceId(values) {
    const form = this._options.dashes
      ? /^[ \t]*([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})[ \t]*$/i
      : /^[ \t]*[0-9a-f]{32}[ \t]*$/i;
    const ids = new Set();
    for (const part of values.join(',').split(',')) {
      if (!form.test(part)) return undefined;
      ids.add(part.replace(/[- \t]/g, '').toLowerCase());
    }
    const [id] = ids;
    return ids.size === 1 && /[1-9a-f]/.test(id) ? id : undefined;
  }

  inject(context, carrier, setter) {
    const span = trace.getSpanContext(context);
    if (!span || !isSpanContextValid(span) || context.getValue(SUPPRESSED)) return;
    const decision = decisionToSend(context, span);
    setter.set(carrier, this._options.header, span.traceId);
    const short = this._options.b3TraceId64 && !span.traceId.endsWith(ZEROS);
    const id = short ? span.traceId.slice(16) : span.traceId;
    if (this._single) {
      setter.set(carrier, B3, [id, span.spanId, decision].filter(Boolean).join('-'));
    }
    if (this._multi) {
      setter.set(carrier, TRACE_ID, id);
      setter.set(carrier, SPAN_ID, span.spanId);
      if (decision === 'd') setter.set(carrier, FLAGS, '1'); // it implies the decision
      else if (decision !== UNDECIDED) setter.set(carrier, SAMPLED, decision);
    }
  }
}

const list = (values) => (Array.isArray(values) ? values : [values ?? '']);

// readB3 returns the span and the decision of the header b3 if it is valid, or of the others. A
// decision without a span is ignored: a caller could force it on a trace that begins here.
function readB3(carrier, getter) {
  const first = (name) => list(getter.get(carrier, name))[0] ?? '';
  const [, ...single] = /^([^-]*)-([^-]*)(?:-([01d])(?:-([^-]*))?)?$/.exec(first(B3)) ?? [];
  if (single.length) {
    const [traceId, spanId, decision = UNDECIDED, parent] = single;
    const span = spanOf(traceId, spanId, parent, decision);
    if (span) return { span, decision };
  }
  let decision = DECISIONS.get(first(SAMPLED).toLowerCase());
  if (decision === undefined) return { decision: UNDECIDED };
  if (first(FLAGS) === '1') decision = 'd';
  const span = spanOf(first(TRACE_ID), first(SPAN_ID), first(PARENT_SPAN_ID) || undefined, decision);
  return { span, decision };
}

// spanOf returns a remote span context, or undefined if an ID is malformed.
function spanOf(traceId, spanId, parent, decision) {
  const isSpanId = (text) => /^[0-9a-f]{16}$/.test(text) && text !== ZEROS;
  if (!/^([0-9a-f]{16}){1,2}$/.test(traceId) || !/[1-9a-f]/.test(traceId)) return undefined;
  if (!isSpanId(spanId) || (parent !== undefined && !isSpanId(parent))) return undefined;
  const sampled = decision === '1' || decision === 'd';
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return { traceId: traceId.padStart(32, '0'), spanId, isRemote: true, traceFlags };
}

// joins reports whether a span is in the trace of x-trace-id, or has a 64-bit ID of an old client.
const joins = (span, id) => span && (span.traceId === id || span.traceId.startsWith(ZEROS));

const decisionOf = (span) => (span.traceFlags & TraceFlags.SAMPLED ? '1' : '0');

function decisionToSend(context, span) {
  const state = context.getValue(STATE);
  if (state?.traceId === span.traceId) {
    if (state.decision === 'd') return 'd';
    // No span was started here, so the decision is open.
    if (state.decision === UNDECIDED && span.isRemote && decisionOf(span) === '0') return UNDECIDED;
  }
  return decisionOf(span);
}
