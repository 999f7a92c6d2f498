import type { Context, TextMapGetter, TextMapPropagator, TextMapSetter } from '@opentelemetry/api';

export interface XTraceIdOptions {
  /** The name of the header that carries the trace ID, by default `x-trace-id`. */
  header?: string;
  /**
   * How B3 is written: in separate headers (the default), in the header `b3`, both, or not at all.
   * It is always read. With `none`, which is for browsers, list a propagator of the parent before
   * this one, such as `W3CTraceContextPropagator`.
   */
  b3Encoding?: 'multi' | 'single' | 'both' | 'none';
  /** Write only the last 64 bits of the trace ID into B3. */
  b3TraceId64?: boolean;
  /** Treat B3 with IDs but without a decision as sampled. */
  deferredSampled?: boolean;
  /** Also read a trace ID in the form of a UUID. */
  dashes?: boolean;
}

/**
 * Propagates the trace ID in a header `x-trace-id` alongside B3, which it reads and writes itself:
 * do not list a B3 propagator, too. The SDK for JavaScript starts a new trace if the parent has no
 * span ID, so `x-trace-id` is ignored without B3 or another propagator's parent in the same trace.
 */
export declare class XTraceIdPropagator implements TextMapPropagator {
  /**
   * Options without a value are unset. Throws a TypeError if one is unknown or has a value that is
   * not possible.
   */
  constructor(options?: XTraceIdOptions);
  inject(context: Context, carrier: unknown, setter: TextMapSetter): void;
  extract(context: Context, carrier: unknown, getter: TextMapGetter): Context;
  fields(): string[];
}
