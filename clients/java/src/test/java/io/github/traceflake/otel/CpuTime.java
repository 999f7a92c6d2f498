package io.github.traceflake.otel;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Collection;
import java.util.List;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/** The CPU time of an operation, which other load on the machine changes less than its time. */
public final class CpuTime implements InternalProfiler {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private long start;

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    start = SYSTEM.getProcessCpuTime();
  }

  @Override
  public Collection<? extends Result<?>> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    double time = SYSTEM.getProcessCpuTime() - start;
    double each = time / result.getMetadata().getAllOps();
    return List.of(new ScalarResult("cpu", each, "ns/op", AggregationPolicy.AVG));
  }

  @Override
  public String getDescription() {
    return "CPU time of an operation";
  }
}
