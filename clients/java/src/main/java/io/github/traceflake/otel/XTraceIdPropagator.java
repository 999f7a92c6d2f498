package io.github.traceflake.otel;

import io.github.traceflake.otel.B3.Decision;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceId;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/**
 * Propagates the trace ID in a header {@code x-trace-id} alongside B3, which contains the parent
 * span and the sampling decision. It reads and writes B3 itself: do not list a B3 propagator, too.
 * <a href="https://github.com/traceflake/traceflake/blob/main/docs/headers.md">docs/headers.md</a>
 * has the rules. The SDK for Java starts a new trace if the parent has no span ID, so {@code
 * x-trace-id} is ignored without B3 or another propagator's parent in the same trace.
 */
public final class XTraceIdPropagator implements TextMapPropagator {
  private static final List<String> OPTIONS =
      Arrays.asList("header", "b3_encoding", "b3_64bit", "deferred_sampled", "dashes");

  // As of 1.50, and so not in the SDK of Spring Boot 3.
  private static final boolean GETTERS_HAVE_ALL =
      Arrays.stream(TextMapGetter.class.getMethods()).anyMatch(m -> m.getName().equals("getAll"));

  private static final Pattern DIGITS = Pattern.compile("[ \t]*([0-9a-fA-F]{32})[ \t]*");
  private static final Pattern DASHES =
      Pattern.compile("[ \t]*(\\p{XDigit}{8}(?:-\\p{XDigit}{4}){3}-\\p{XDigit}{12})[ \t]*");

  private final String header;
  private final B3Encoding encoding;
  private final boolean traceId64;
  private final boolean deferredSampled;
  private final boolean dashes;
  private final Collection<String> fields;

  private XTraceIdPropagator(Builder builder) {
    header = builder.header;
    encoding = builder.encoding;
    traceId64 = builder.traceId64;
    deferredSampled = builder.deferredSampled;
    dashes = builder.dashes;
    List<String> names = new ArrayList<>();
    names.add(header);
    if (encoding.multi) {
      Collections.addAll(names, B3.TRACE_ID, B3.SPAN_ID, B3.SAMPLED, B3.FLAGS);
    }
    if (encoding.single) {
      names.add(B3.SINGLE);
    }
    fields = Collections.unmodifiableList(names);
  }

  /**
   * Returns a builder of a propagator.
   *
   * @return the builder, with the defaults
   */
  public static Builder builder() {
    return new Builder();
  }

  @Override
  public Collection<String> fields() {
    return fields;
  }

  @Override
  public <C> Context extract(Context context, C carrier, TextMapGetter<C> getter) {
    if (context == null) {
      return Context.root();
    }
    if (getter == null) {
      return context;
    }
    SpanContext here = Span.fromContext(context).getSpanContext();
    // By a propagator that is listed before, such as W3C's.
    SpanContext found = here.isRemote() ? here : SpanContext.getInvalid();
    B3 b3 = B3.read(carrier, getter);
    SpanContext span = b3.span;
    Decision decision = b3.decision;
    String id = traceId(values(carrier, getter));
    if (id != null && joins(span, id)) {
      span = with(span, id, span.getTraceFlags());
      found = joins(found, id) ? with(found, id, found.getTraceFlags()) : SpanContext.getInvalid();
    } else if (id != null && joins(found, id)) {
      found = with(found, id, found.getTraceFlags());
      span = found;
      decision = Decision.of(found);
    }
    if (!span.isValid()) {
      return context;
    }
    if (found.getTraceId().equals(span.getTraceId())) {
      if (found.getSpanId().equals(span.getSpanId())) {
        span = found; // W3C's has a tracestate and the random flag
      } else if (decision == Decision.UNDECIDED) {
        span = with(span, span.getTraceId(), found.getTraceFlags());
      }
      if (decision == Decision.UNDECIDED) {
        decision = Decision.of(span);
      }
    }
    if (decision == Decision.UNDECIDED && deferredSampled) {
      decision = Decision.SAMPLED;
      span = with(span, span.getTraceId(), TraceFlags.getSampled());
    }
    return B3.State.with(context, span.getTraceId(), decision).with(Span.wrap(span));
  }

  /** Reports whether a span is in the trace of x-trace-id, or has a 64-bit ID of an old client. */
  private static boolean joins(SpanContext span, String id) {
    String own = span.getTraceId();
    return span.isValid() && (own.equals(id) || own.startsWith("0000000000000000"));
  }

  private static SpanContext with(SpanContext span, String traceId, TraceFlags flags) {
    return SpanContext.createFromRemoteParent(
        traceId, span.getSpanId(), flags, span.getTraceState());
  }

  /** Returns the values of the header, or only the first if the SDK has no more. */
  private <C> Iterator<String> values(C carrier, TextMapGetter<C> getter) {
    if (GETTERS_HAVE_ALL) {
      return getter.getAll(carrier, header);
    }
    String value = getter.get(carrier, header);
    return (value == null ? Collections.<String>emptyList() : Arrays.asList(value)).iterator();
  }

  /** Returns the one ID in these values, or null. */
  private String traceId(Iterator<String> values) {
    String id = null;
    while (values.hasNext()) {
      for (String part : values.next().split(",", -1)) {
        String next = null;
        if (DIGITS.matcher(part).matches() || dashes && DASHES.matcher(part).matches()) {
          next = part.replaceAll("[- \t]", "").toLowerCase(Locale.ROOT);
        }
        if (!TraceId.isValid(next) || id != null && !id.equals(next)) {
          return null;
        }
        id = next;
      }
    }
    return id;
  }

  @Override
  public <C> void inject(Context context, C carrier, TextMapSetter<C> setter) {
    if (context == null || setter == null) {
      return;
    }
    SpanContext span = Span.fromContext(context).getSpanContext();
    if (!span.isValid()) {
      return;
    }
    Decision decision = B3.State.of(context, span);
    setter.set(carrier, header, span.getTraceId());
    String id = span.getTraceId();
    if (traceId64 && !id.endsWith("0000000000000000")) {
      id = id.substring(16);
    }
    if (encoding.single) {
      String end = decision == Decision.UNDECIDED ? "" : "-" + decision.text;
      setter.set(carrier, B3.SINGLE, id + "-" + span.getSpanId() + end);
    }
    if (encoding.multi) {
      setter.set(carrier, B3.TRACE_ID, id);
      setter.set(carrier, B3.SPAN_ID, span.getSpanId());
      if (decision == Decision.DEBUG) {
        setter.set(carrier, B3.FLAGS, "1"); // it implies the decision
      } else if (decision != Decision.UNDECIDED) {
        setter.set(carrier, B3.SAMPLED, decision.text);
      }
    }
  }

  @Override
  public String toString() {
    return "XTraceIdPropagator{" + header + "}";
  }

  /** How B3 is written. Both forms are always read. */
  public enum B3Encoding {
    /** The separate headers X-B3-TraceId, X-B3-SpanId, X-B3-Sampled and X-B3-Flags. */
    MULTI(true, false),
    /** The header b3. */
    SINGLE(false, true),
    /** All of them. */
    BOTH(true, true),
    /** No B3: list a propagator of the parent, such as W3C's, before this one. */
    NONE(false, false);

    private final boolean multi;
    private final boolean single;

    B3Encoding(boolean multi, boolean single) {
      this.multi = multi;
      this.single = single;
    }
  }

  /** Builds a propagator. */
  public static final class Builder {
    private static final String HEADER = "x-trace-id";
    private static final Pattern TOKEN = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+");
    private static final Pattern TAKEN =
        Pattern.compile("traceparent|tracestate|baggage|b3|x-b3-.*", Pattern.CASE_INSENSITIVE);

    private String header = HEADER;
    private B3Encoding encoding = B3Encoding.MULTI;
    private boolean traceId64;
    private boolean deferredSampled;
    private boolean dashes;

    private Builder() {}

    /**
     * Sets the name of the header that carries the trace ID.
     *
     * @param name the header's name
     * @return this builder
     * @throws IllegalArgumentException if the name is not an HTTP field name, or belongs to another
     *     format
     */
    public Builder setHeader(String name) {
      if (!TOKEN.matcher(name).matches() || TAKEN.matcher(name).matches()) {
        throw new IllegalArgumentException(
            "traceflake: header is \"" + name + "\", which is not a name for a header of its own");
      }
      header = name;
      return this;
    }

    /**
     * Sets how B3 is written.
     *
     * @param encoding the encoding
     * @return this builder
     */
    public Builder setB3Encoding(B3Encoding encoding) {
      this.encoding = encoding;
      return this;
    }

    /**
     * Writes only the last 64 bits of the trace ID into B3, for peers that do not support 128 bits.
     *
     * @param traceId64 whether to shorten the ID
     * @return this builder
     */
    public Builder setB3TraceId64(boolean traceId64) {
      this.traceId64 = traceId64;
      return this;
    }

    /**
     * Treats B3 with IDs but without a sampling decision as sampled.
     *
     * @param deferredSampled whether such traces are sampled
     * @return this builder
     */
    public Builder setDeferredSampled(boolean deferredSampled) {
      this.deferredSampled = deferredSampled;
      return this;
    }

    /**
     * Also reads a trace ID in the form of a UUID, as proxies write x-request-id.
     *
     * @param dashes whether to read this form
     * @return this builder
     */
    public Builder setDashes(boolean dashes) {
      this.dashes = dashes;
      return this;
    }

    /**
     * Returns the propagator.
     *
     * @return the propagator, which is safe for concurrent use
     */
    public XTraceIdPropagator build() {
      return new XTraceIdPropagator(this);
    }

    /** Sets the options of a configuration by their names. Empty ones are unset. */
    Builder configure(UnaryOperator<String> configuration) {
      for (String option : OPTIONS) {
        String value = configuration.apply(option);
        if (value != null && !value.trim().isEmpty()) {
          set(option, value.trim());
        }
      }
      return this;
    }

    /** Sets the options by their properties, such as otel.traceflake.b3.encoding. */
    Builder configureByProperties(UnaryOperator<String> properties) {
      return configure(
          option -> properties.apply("otel.traceflake." + option.replace('_', '.')));
    }

    private void set(String option, String value) {
      switch (option) {
        case "header":
          setHeader(value);
          break;
        case "b3_encoding":
          encoding = B3Encoding.valueOf(oneOf(option, value, "MULTI", "SINGLE", "BOTH", "NONE"));
          break;
        case "b3_64bit":
          traceId64 = flag(option, value);
          break;
        case "deferred_sampled":
          deferredSampled = flag(option, value);
          break;
        default:
          dashes = flag(option, value);
      }
    }

    private static boolean flag(String option, String value) {
      return oneOf(option, value, "TRUE", "FALSE").equals("TRUE");
    }

    private static String oneOf(String option, String value, String... possible) {
      String upper = value.toUpperCase(Locale.ROOT);
      if (!Arrays.asList(possible).contains(upper)) {
        String list = String.join(", ", possible).toLowerCase(Locale.ROOT);
        throw new IllegalArgumentException(
            "traceflake: " + option + " is \"" + value + "\": want one of " + list);
      }
      return upper;
    }
  }

  /** Throws an exception if one of these is not the name of an option. */
  static void checkOptions(Set<String> names) {
    for (String name : names) {
      if (!OPTIONS.contains(name)) {
        throw new IllegalArgumentException(
            "traceflake: there is no option " + name + ": want one of " + String.join(", ", OPTIONS));
      }
    }
  }
}
