package shop;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.context.Context;
import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;
import io.quarkus.vertx.http.HttpServer;
import jakarta.inject.Inject;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * A service. For each argument, a list of headers, it gets a request, and prints the headers that it
 * would send to another service.
 */
@QuarkusMain
public class Shop implements QuarkusApplication {
  @Inject HttpServer server;

  @Override
  public int run(String... args) throws Exception {
    for (String headers : args) {
      try (var socket = new Socket("127.0.0.1", server.getPort())) {
        String request =
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
        socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
        socket.getInputStream().readAllBytes();
      }
    }
    return 0;
  }

  public static void main(String[] args) {
    Quarkus.run(Shop.class, args);
  }

  @Path("/")
  public static class Resource {
    @Inject OpenTelemetry openTelemetry;

    @GET
    public void get() {
      openTelemetry
          .getPropagators()
          .getTextMapPropagator()
          .inject(Context.current(), System.out, (out, k, v) -> out.println(k + ": " + v));
    }
  }
}
