package io.github.traceflake.otel;

import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanId;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceId;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Locale;

/** The span context and the decision in B3's headers. */
final class B3 {
  static final String SINGLE = "b3";
  static final String TRACE_ID = "x-b3-traceid";
  static final String SPAN_ID = "x-b3-spanid";
  static final String PARENT_SPAN_ID = "x-b3-parentspanid";
  static final String SAMPLED = "x-b3-sampled";
  static final String FLAGS = "x-b3-flags";

  private static final B3 NONE = new B3(SpanContext.getInvalid(), Decision.UNDECIDED);

  final SpanContext span; // invalid if the headers contain none
  final Decision decision;

  private B3(SpanContext span, Decision decision) {
    this.span = span;
    this.decision = decision;
  }

  /**
   * Reads the header b3 if that is valid, and otherwise the separate headers. A decision without a
   * span is ignored: a caller could force it on a trace that begins here.
   */
  static <C> B3 read(C carrier, TextMapGetter<C> getter) {
    B3 b3 = readSingle(getter.get(carrier, SINGLE));
    return b3.span.isValid() ? b3 : readSeparate(carrier, getter);
  }

  private static B3 readSingle(String header) {
    String[] parts = header == null ? new String[0] : header.split("-", -1);
    Decision decision = parts.length > 2 ? Decision.parse(parts[2]) : Decision.UNDECIDED;
    if (parts.length < 2
        || parts.length > 4
        || decision == null
        || parts.length == 4 && !SpanId.isValid(parts[3])) {
      return NONE;
    }
    return of(parts[0], parts[1], decision);
  }

  private static <C> B3 readSeparate(C carrier, TextMapGetter<C> getter) {
    String sampled = text(carrier, getter, SAMPLED).toLowerCase(Locale.ROOT);
    Decision decision = Decision.UNDECIDED;
    if (sampled.equals("1") || sampled.equals("true")) {
      decision = Decision.SAMPLED;
    } else if (sampled.equals("0") || sampled.equals("false")) {
      decision = Decision.NOT_SAMPLED;
    } else if (!sampled.isEmpty()) {
      return NONE;
    }
    if (text(carrier, getter, FLAGS).equals("1")) {
      decision = Decision.DEBUG;
    }
    String parent = text(carrier, getter, PARENT_SPAN_ID);
    if (!parent.isEmpty() && !SpanId.isValid(parent)) {
      return NONE;
    }
    return of(text(carrier, getter, TRACE_ID), text(carrier, getter, SPAN_ID), decision);
  }

  private static <C> String text(C carrier, TextMapGetter<C> getter, String name) {
    String value = getter.get(carrier, name);
    return value == null ? "" : value;
  }

  private static B3 of(String traceId, String spanId, Decision decision) {
    String id = traceId.length() == 16 ? "0000000000000000" + traceId : traceId;
    if (!TraceId.isValid(id) || !SpanId.isValid(spanId)) {
      return NONE;
    }
    boolean sampled = decision == Decision.SAMPLED || decision == Decision.DEBUG;
    TraceFlags flags = sampled ? TraceFlags.getSampled() : TraceFlags.getDefault();
    TraceState state = TraceState.getDefault();
    return new B3(SpanContext.createFromRemoteParent(id, spanId, flags, state), decision);
  }

  /** B3's sampling decision, as the header b3 has it. */
  enum Decision {
    UNDECIDED(""), // left to the receiver
    NOT_SAMPLED("0"),
    SAMPLED("1"),
    DEBUG("d"); // sampled, and services must not sample it away

    final String text;

    Decision(String text) {
      this.text = text;
    }

    /** Returns the decision of a text, or null if it is not one. */
    static Decision parse(String text) {
      for (Decision decision : values()) {
        if (decision != UNDECIDED && decision.text.equals(text)) {
          return decision;
        }
      }
      return null;
    }

    static Decision of(SpanContext span) {
      return span.isSampled() ? SAMPLED : NOT_SAMPLED;
    }
  }

  /**
   * What a span context cannot express of a decision: that it is missing, or the debug flag. It
   * belongs to one trace: one that begins here does not have it.
   */
  static final class State {
    private static final ContextKey<State> KEY = ContextKey.named("traceflake-b3");

    private final String traceId;
    private final Decision decision;

    private State(String traceId, Decision decision) {
      this.traceId = traceId;
      this.decision = decision;
    }

    /** Returns the context with the decision of a trace. */
    static Context with(Context context, String traceId, Decision decision) {
      return context.with(KEY, new State(traceId, decision));
    }

    /** Returns the decision to be sent for a span. */
    static Decision of(Context context, SpanContext span) {
      State state = context.get(KEY);
      if (state != null && state.traceId.equals(span.getTraceId())) {
        boolean started = !span.isRemote(); // here, so that the decision is not open
        if (state.decision == Decision.DEBUG
            || state.decision == Decision.UNDECIDED && !started && !span.isSampled()) {
          return state.decision;
        }
      }
      return Decision.of(span);
    }
  }
}
