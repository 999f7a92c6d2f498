package kubernetes

import (
	"os"
	"strings"
	"testing"
)

// Otherwise make kubernetes would build a server that no test finds.
func TestVersionIsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("apiserver/go.mod")
	if err != nil || !strings.Contains(string(mod), "\tk8s.io/kubernetes "+Version+"\n") {
		t.Errorf("apiserver/go.mod does not require Kubernetes %s: %v", Version, err)
	}
}
