package io.github.traceflake.otel;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;

/** The cost of IDs and of recorded root spans, with the SDK's generator and with ours: bench.sh. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime) // a median would hide the draws of random numbers
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 4) // until AES runs by the processor's instructions
@Measurement(iterations = 6, time = 2)
@Fork(1)
public class IdBenchmark {
  private static final int N = 200;

  @Param({"SDK", "traceflake"})
  public String generator;

  private IdGenerator ids;
  private Tracer tracer;

  @Setup
  public void setUp() {
    ids = generator.equals("SDK") ? IdGenerator.random() : TraceflakeIdGenerator.getInstance();
    tracer =
        SdkTracerProvider.builder()
            .setIdGenerator(ids)
            .addSpanProcessor(new Records())
            .build()
            .get("benchmark");
  }

  @Benchmark
  @OperationsPerInvocation(N)
  public void traceId(Blackhole blackhole) {
    for (int i = 0; i < N; i++) {
      blackhole.consume(ids.generateTraceId());
    }
  }

  @Benchmark
  @OperationsPerInvocation(N)
  public void spanId(Blackhole blackhole) {
    for (int i = 0; i < N; i++) {
      blackhole.consume(ids.generateSpanId());
    }
  }

  /** The least that the SDK does for a recorded span. */
  @Benchmark
  @OperationsPerInvocation(N)
  public void bareRootSpan(Blackhole blackhole) {
    for (int i = 0; i < N; i++) {
      Span span = tracer.spanBuilder("GET /").setNoParent().startSpan();
      span.end();
      blackhole.consume(span);
    }
  }

  /** A span as of an HTTP server. */
  @Benchmark
  @OperationsPerInvocation(N)
  public void rootSpan(Blackhole blackhole) {
    for (int i = 0; i < N; i++) {
      Span span =
          tracer
              .spanBuilder("GET /shop/{item}")
              .setSpanKind(SpanKind.SERVER)
              .setNoParent()
              .setAttribute("http.request.method", "GET")
              .setAttribute("url.path", "/shop/7")
              .setAttribute("url.scheme", "https")
              .setAttribute("server.address", "shop.example.com")
              .setAttribute("user_agent.original", "curl/8.5.0")
              .startSpan();
      span.setAttribute("http.response.status_code", 200);
      span.setAttribute("http.route", "/shop/{item}");
      span.end();
      blackhole.consume(span);
    }
  }

  /** Without a processor the SDK would not record. */
  private static final class Records implements SpanProcessor {
    @Override
    public void onStart(Context parent, ReadWriteSpan span) {}

    @Override
    public boolean isStartRequired() {
      return true;
    }

    @Override
    public void onEnd(ReadableSpan span) {}

    @Override
    public boolean isEndRequired() {
      return true;
    }
  }
}
