/**
 * Generates trace IDs that sort by time, and random span IDs. Pass it to OpenTelemetry's SDK as
 * `idGenerator`. Use one generator for each page, worker or process: its trace IDs increase, except
 * after the clock has stepped back by two seconds or more. Uniqueness is probabilistic: two IDs of
 * the same millisecond and sequence number are equal with probability 2^-64.
 *
 * While the clock is outside the years 2020 to 2089, trace IDs are random.
 *
 * The constructor of a subclass with methods or fields of these names throws: wrap a generator
 * instead.
 */
export declare class TraceflakeIdGenerator {
  /** Returns a trace ID of 32 lower-case hex digits. */
  readonly generateTraceId: () => string;
  /** Returns a span ID of 16 lower-case hex digits. */
  readonly generateSpanId: () => string;
}

/**
 * Returns the trace ID of a time, a sequence number from 0 to 8388607 and a low half of 16 hex
 * digits. The caller must ensure that it is unique. Throws a RangeError if an argument is out of
 * range.
 */
export declare function traceIdAt(unixMillis: number, sequence: number, low: string): string;

/**
 * Returns the time of a trace ID of this format, to the millisecond, or null for a 64-bit ID. The
 * time of a foreign ID is meaningless. Throws a TypeError for text that is not a trace ID.
 */
export declare function timeOf(id: string): Date | null;

/**
 * Returns the lower bound of a search for the spans of a trace: the ID's time less slackMillis (an
 * hour by default, at least 0). Returns null if the ID has no time, or a time more than an hour
 * ahead. Repeat a search that finds nothing without the bound: the ID may be foreign.
 */
export declare function notBefore(id: string, slackMillis?: number): Date | null;
