package io.github.traceflake.otel;

import io.opentelemetry.sdk.trace.IdGenerator;
import java.lang.management.ManagementFactory;
import java.security.SecureRandom;

/** Prints the CPU time of the first trace ID in this process, in microseconds: bench.sh. */
final class ColdStart {
  public static void main(String[] args) {
    var threads = ManagementFactory.getThreadMXBean();
    threads.getCurrentThreadCpuTime();
    long start = threads.getCurrentThreadCpuTime();
    String id = "";
    switch (args[0]) {
      case "SDK" -> id = IdGenerator.random().generateTraceId();
      case "SecureRandom" -> new SecureRandom().nextBytes(new byte[8]);
      default -> id = TraceflakeIdGenerator.getInstance().generateTraceId();
    }
    long end = threads.getCurrentThreadCpuTime();
    System.out.println((end - start) / 1000);
    if (!args[0].equals("SecureRandom") && id.length() != 32) {
      throw new AssertionError(id);
    }
  }
}
