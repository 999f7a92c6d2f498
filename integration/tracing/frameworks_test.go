package tracing

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v4"
	"github.com/riandyrn/otelchi"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The lines of docs/headers.md put the trace ID on the responses of each framework, whether the
// handler writes at once or fails.
func TestFrameworks(t *testing.T) {
	globals(t)
	for name, handler := range map[string]http.Handler{
		"chi": chiService(), "gin": ginService(), "echo": echoService(),
		"connect": connectService(t),
	} {
		server := httptest.NewServer(handler)
		expectTrace(t, name, server.URL)
		server.Close()
	}
	app := fiberService()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	expectTrace(t, "fiber", "http://"+listener.Addr().String())
	response, err := app.Test(httptest.NewRequest(http.MethodPost, "/untraced", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := response.Header.Values("x-trace-id"); len(got) != 0 {
		t.Errorf("fiber: x-trace-id %q without a span", got)
	}
	if err := app.Shutdown(); err != nil {
		t.Error(err)
	}
}

// expectTrace sends requests that a handler answers and that none does.
func expectTrace(t *testing.T, name, url string) {
	for _, path := range []string{"/", "/missing"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-trace-id", traceT)
		r.Header.Set("Content-Type", "application/proto")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if got := response.Header.Get("x-trace-id"); got != traceT {
			t.Errorf("%s: %s: %s, x-trace-id %q, %s", name, path, response.Status, got, body)
		}
	}
}

func chiService() http.Handler {
	r := chi.NewRouter()
	r.Use(otelchi.Middleware("shop"))
	r.Use(func(h http.Handler) http.Handler { return xtraceid.ResponseHandler(h) })
	r.Post("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") })
	return r
}

func ginService() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(otelgin.Middleware("shop"))
	r.Use(func(c *gin.Context) {
		xtraceid.SetResponseHeaders(c.Request.Context(), c.Writer.Header())
	})
	r.POST("/", func(c *gin.Context) { c.String(http.StatusOK, "hi") })
	return r
}

func echoService() http.Handler {
	e := echo.New()
	e.Use(otelecho.Middleware("shop"))
	e.Use(echo.WrapMiddleware(func(h http.Handler) http.Handler {
		return xtraceid.ResponseHandler(h)
	}))
	e.POST("/", func(c echo.Context) error { return c.String(http.StatusOK, "hi") })
	return e
}

// fiberService starts spans as gofiber/contrib's middleware does.
func fiberService() *fiber.App {
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		if c.Path() == "/untraced" {
			return c.Next()
		}
		carrier := propagation.HeaderCarrier(c.GetReqHeaders())
		ctx := otel.GetTextMapPropagator().Extract(c.Context(), carrier)
		ctx, span := otel.Tracer("fiber").Start(ctx, c.Path())
		defer span.End()
		c.SetContext(ctx)
		return c.Next()
	})
	app.Use(func(c fiber.Ctx) error {
		if id := trace.SpanContextFromContext(c.Context()).TraceID(); id.IsValid() {
			c.Set(xtraceid.DefaultHeader, id.String())
		}
		return c.Next()
	})
	app.Post("/", func(c fiber.Ctx) error { return c.SendString("hi") })
	return app
}

func connectService(t *testing.T) http.Handler {
	tracing, err := otelconnect.NewInterceptor(otelconnect.WithTrustRemote())
	if err != nil {
		t.Fatal(err)
	}
	inHeader := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if call, ok := connect.CallInfoForHandlerContext(ctx); ok {
				xtraceid.SetResponseHeaders(ctx, call.ResponseHeader())
			}
			return next(ctx, r)
		}
	})
	interceptors := connect.WithInterceptors(tracing, inHeader)
	mux := http.NewServeMux()
	for path, err := range map[string]error{"/{$}": nil,
		"/missing": connect.NewError(connect.CodeNotFound, nil)} {
		answer := func(context.Context, *connect.Request[emptypb.Empty]) (
			*connect.Response[emptypb.Empty], error,
		) {
			return connect.NewResponse(&emptypb.Empty{}), err
		}
		mux.Handle(path, connect.NewUnaryHandler("/shop/Answer", answer, interceptors))
	}
	return mux
}
