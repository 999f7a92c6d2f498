package kubernetes

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestApplyIsStrict(t *testing.T) {
	s := Shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for want, object := range map[string]string{
		"holder":   "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nspec: {holder: me}\n",
		"metadata": "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nmetadata: {name: b}\n",
		"Nothing":  "apiVersion: v1\nkind: Nothing\nmetadata: {name: a}\n",
	} {
		if err := s.Apply(ctx, object); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one that says %q", object, err, want)
		}
	}
}

func TestVersionIsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("apiserver/go.mod")
	if err != nil || !strings.Contains(string(mod), "\tk8s.io/kubernetes "+Version+"\n") {
		t.Errorf("apiserver/go.mod does not require Kubernetes %s: %v", Version, err)
	}
}
