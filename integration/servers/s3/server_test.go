package s3

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// An acknowledged write survives the end of the server.
func TestServerKeepsItsData(t *testing.T) {
	s := ForTest(t)
	s.Bucket(t, "bucket")
	s.MustDo(t, http.MethodPut, "/bucket/a/key", []byte("text"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Do(ctx, http.MethodGet, "/bucket/a/key", nil); err == nil {
		t.Error("it answers although it was killed")
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.MustDo(t, http.MethodGet, "/bucket/a/key", nil); string(got) != "text" {
		t.Errorf("got %q", got)
	}
}
