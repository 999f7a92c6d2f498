/**
 * Generates trace IDs that sort by time, and random span IDs. OpenTelemetry's SDK takes it as
 * `idGenerator`. Use one for each page, worker or process: its trace IDs grow, except after the
 * clock has stepped back by two seconds or more. Uniqueness is probabilistic: two of the same
 * millisecond and sequence differ in 64 bits from `crypto.getRandomValues`.
 *
 * With a clock outside of 2020 to 2089, trace IDs are random.
 *
 * The constructor of a subclass with methods of these names throws: wrap a generator instead.
 */
export declare class TraceflakeIdGenerator {
  /** Returns a trace ID of 32 lower-case hex digits. */
  generateTraceId: () => string;
  /** Returns a span ID of 16 lower-case hex digits. */
  generateSpanId: () => string;
}

/**
 * Returns the trace ID of a time, a sequence number from 0 to 8388607 and a low half of 16 hex
 * digits. Whether it is unique is up to the caller. Throws a RangeError if there is no such ID.
 */
export declare function traceIdAt(unixMillis: number, sequence: number, low: string): string;

/**
 * Returns the time of a trace ID of this format, to the millisecond; null for a 64-bit ID, which
 * has none. Any other ID has some time: that of a foreign one means nothing. Throws a TypeError
 * for text that is not a trace ID.
 */
export declare function timeOf(id: string): Date | null;

/**
 * Returns the lower bound of a search for the spans of a trace: the ID's time less slackMillis (an
 * hour by default, at least 0). Returns null if the ID has no time, or one more than an hour ahead.
 * Repeat a search that finds nothing without the bound: the ID may be a foreign one.
 */
export declare function notBefore(id: string, slackMillis?: number): Date | null;
