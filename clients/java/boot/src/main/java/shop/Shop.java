package shop;

import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.propagation.Propagator;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.core.env.Environment;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * A service. For each argument, a list of headers, it gets a request, and prints the headers that it
 * would send to another service.
 */
@SpringBootApplication
@RestController
public class Shop {
  private final Tracer tracer;
  private final Propagator propagator;

  Shop(Tracer tracer, Propagator propagator) {
    this.tracer = tracer;
    this.propagator = propagator;
  }

  @GetMapping("/")
  void get() {
    propagator.inject(
        tracer.currentSpan().context(), System.out, (out, k, v) -> out.println(k + ": " + v));
  }

  public static void main(String[] args) throws Exception {
    try (var context = SpringApplication.run(Shop.class)) {
      int port = context.getBean(Environment.class).getProperty("local.server.port", int.class);
      for (String headers : args) {
        try (var socket = new Socket("127.0.0.1", port)) {
          String request =
              "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
          socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
          socket.getInputStream().readAllBytes();
        }
      }
    }
  }
}
