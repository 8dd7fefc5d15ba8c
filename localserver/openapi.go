package localserver

import (
	_ "embed"
	"net/http"
)

// openAPI describes the service, in OpenAPI 3.1. A test holds the answers of a
// running server against it.
//
//go:embed openapi.json
var openAPI []byte

// describe is GET /openapi.json.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openAPI) // a client that is gone needs no answer
}
