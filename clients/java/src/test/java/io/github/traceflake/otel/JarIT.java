package io.github.traceflake.otel;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/** The built jar, with the agent, the SDK's autoconfiguration, both, Spring Boot, and Quarkus. */
class JarIT {
  static final String JAR = System.getProperty("jar");
  static final String AGENT = "-javaagent:" + System.getProperty("agent");
  static final String EXTENSION = "-Dotel.javaagent.extensions=" + JAR;
  static final String[] OPTIONS = {
    "-Dotel.propagators=tracecontext,xtraceid",
    "-Dotel.traceflake.header=x-request-id",
    "-Dotel.traceflake.b3.encoding=single",
    "-Dotel.traceflake.b3.64bit=true",
    "-Dotel.traceflake.deferred.sampled=true",
    "-Dotel.traceflake.dashes=true",
  };
  static final String INCOMING =
      "x-request-id: 32d1f0a9-c800-0005-a1b2-c3d4e5f60718\r\nb3: 00f067aa0ba902b7-53995c3f42cd8ad8\r\n";

  // As of SDK 1.60. Agents before 2.26 have an older one.
  static final String RANDOM_FLAG = Boolean.getBoolean("no.random.flag") ? "01" : "03";

  static final String AUTOCONFIGURED = Autoconfigured.class.getName();
  static final String TEST_CLASSES = "target/test-classes";
  static final List<String> SDK =
      Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
          .filter(path -> path.contains("opentelemetry"))
          .toList();

  @TempDir Path dir;

  @Test
  void agent() throws Exception {
    assertTraced(run(Service.class.getName(), List.of(TEST_CLASSES), AGENT, EXTENSION));
  }

  @Test
  void agentWithAConfigurationFile() throws Exception {
    Path config = dir.resolve("otel.yaml");
    Files.writeString(
        config,
        """
        file_format: "1.2"
        propagator:
          composite:
            - tracecontext:
            - xtraceid:
                header: x-request-id
                b3_encoding: single
                b3_64bit: true
                deferred_sampled: true
                dashes: true
        tracer_provider:
          processors: # without one, the SDK does not trace
            - simple:
                exporter:
                  console:
          id_generator:
            traceflake:
        """);
    String option = "-Dotel.config.file=" + config;
    assertTraced(run(Service.class.getName(), List.of(TEST_CLASSES), AGENT, EXTENSION, option));
  }

  @Test
  void autoconfiguration() throws Exception {
    assertTraced(run(AUTOCONFIGURED, classPath()));
  }

  @Test
  void autoconfigurationWithAMisspeltSetting() throws Exception {
    Process process = start(AUTOCONFIGURED, classPath(), "-Dotel.traceflake.dashes=yes");
    assertTrue(process.waitFor() != 0);
    String log = Files.readString(dir.resolve("err"), UTF_8);
    assertTrue(log.contains("traceflake: dashes is \"yes\": want one of true, false"), log);
  }

  /** An application of Spring Boot that has no line for the jar. */
  @Test
  @EnabledIfSystemProperty(named = "boot", matches = ".+")
  void springBoot() throws Exception {
    List<String> classPath = new ArrayList<>(List.of(System.getProperty("boot"), JAR));
    String[] options = {
      "-Dmanagement.tracing.propagation.consume=w3c", // B3 is for ours
      "-Dmanagement.tracing.sampling.probability=1",
      "-Dserver.port=0"
    };
    assertTraced(run("shop.Shop", classPath, options));
    classPath.remove(JAR);
    List<String> headers = run("shop.Shop", classPath, options);
    assertThrows(AssertionError.class, () -> assertTraced(headers));
  }

  /** An application of Quarkus that has no line for the jar, but for the propagator's name. */
  @Test
  @EnabledIfSystemProperty(named = "quarkus", matches = ".+")
  void quarkus() throws Exception {
    List<String> classPath = List.of(System.getProperty("quarkus"));
    String main = "io.quarkus.bootstrap.runner.QuarkusEntryPoint";
    assertTraced(run(main, classPath, "-Dotel.traces.exporter=none"));
  }

  @Test
  void autoconfigurationAndAgent() throws Exception {
    assertTraced(run(AUTOCONFIGURED, classPath(), AGENT, EXTENSION));
  }

  @Test
  void autoconfigurationWithoutTheJar() throws Exception {
    List<String> classPath = classPath();
    classPath.remove(JAR);
    List<String> headers =
        run(AUTOCONFIGURED, classPath, "-Dotel.propagators=tracecontext");
    assertThrows(AssertionError.class, () -> assertTraced(headers));
  }

  @Test
  void contents() throws Exception {
    try (JarFile jar = new JarFile(JAR)) {
      assertEquals(
          "io.github.traceflake.otel",
          jar.getManifest().getMainAttributes().getValue("Automatic-Module-Name"));
      for (var entry : jar.stream().filter(e -> !e.isDirectory()).toList()) {
        String name = entry.getName();
        assertTrue(
            name.startsWith("META-INF/") || name.startsWith("io/github/traceflake/otel/"), name);
        if (name.endsWith(".class")) {
          byte[] bytes = jar.getInputStream(entry).readNBytes(8);
          assertEquals(52, bytes[7], name + " is not for Java 8");
        }
      }
    }
  }

  private static List<String> classPath() {
    List<String> path = new ArrayList<>(SDK);
    path.add(JAR);
    path.add(TEST_CLASSES);
    return path;
  }

  /** Runs a program that gets three requests, and returns the headers that it sends for them. */
  private List<String> run(String main, List<String> classPath, String... options)
      throws Exception {
    Process process = start(main, classPath, options);
    assertTrue(process.waitFor(5, TimeUnit.MINUTES), "the program does not end");
    String log = Files.readString(dir.resolve("err"), UTF_8);
    assertEquals(0, process.exitValue(), log);
    assertFalse(log.contains("ERROR") || log.contains("Exception"), log);
    return Files.readAllLines(dir.resolve("out"), UTF_8);
  }

  private Process start(String main, List<String> classPath, String... options) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none"));
    command.add("-Dotel.traces.exporter=console");
    command.addAll(List.of(OPTIONS));
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", String.join(File.pathSeparator, classPath), main));
    command.addAll(List.of("A: 1\r\n", "A: 2\r\n", INCOMING));
    return new ProcessBuilder(command)
        .redirectOutput(dir.resolve("out").toFile())
        .redirectError(dir.resolve("err").toFile())
        .start();
  }

  /** Two new traces, whose IDs have the time of now and are random, and the caller's trace. */
  private static void assertTraced(List<String> headers) {
    List<String> ids =
        values(headers, "traceparent").stream().map(value -> value.substring(3, 35)).toList();
    assertEquals(3, ids.size(), () -> String.join("\n", headers));
    for (String id : ids.subList(0, 2)) {
      long time = (Long.parseUnsignedLong(id.substring(0, 16), 16) >>> 23) + 1577836800000L;
      long age = System.currentTimeMillis() - time;
      assertTrue(0 <= age && age < 60_000, "the time of " + id);
    }
    assertTrue(ids.get(0).compareTo(ids.get(1)) < 0, ids::toString);
    assertEquals("32d1f0a9c8000005a1b2c3d4e5f60718", ids.get(2));
    assertEquals(
        List.of(RANDOM_FLAG, RANDOM_FLAG, "01"),
        values(headers, "traceparent").stream().map(value -> value.substring(53)).toList());

    assertEquals(ids, values(headers, "x-request-id"));
    assertEquals(
        ids.stream().map(id -> id.substring(16) + "-1").toList(),
        values(headers, "b3").stream().map(b3 -> b3.replaceFirst("-.{16}-", "-")).toList());
  }

  private static List<String> values(List<String> headers, String name) {
    return headers.stream()
        .filter(header -> header.toLowerCase(Locale.ROOT).startsWith(name + ": "))
        .map(header -> header.substring(name.length() + 2))
        .toList();
  }
}
