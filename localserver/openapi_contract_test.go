package localserver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubbub/protocol/testkit"
)

// contract compares responses with openapi.json.
type contract struct {
	t       *testing.T
	doc     map[string]any
	schemas *jsonschema.Compiler
	seen    map[string]bool // "METHOD path status"
}

func newContract(t *testing.T, raw []byte) *contract {
	t.Helper()
	doc := testkit.Must(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(t)
	c := &contract{t: t, doc: doc.(map[string]any), schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.schemas.DefaultDraft(jsonschema.Draft2020) // that of OpenAPI 3.1
	testkit.NoError(t, c.schemas.AddResource("openapi.json", doc))
	return c
}

// at follows a path of names into the document, through references.
func (c *contract) at(names ...string) (any, bool) {
	var node any = c.doc
	for _, name := range names {
		m, ok := node.(map[string]any)
		if !ok {
			return nil, false
		}
		if node, ok = m[name]; !ok {
			return nil, false
		}
		if ref, ok := node.(map[string]any)["$ref"].(string); ok && name != "schema" {
			if node, ok = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); !ok {
				c.t.Fatalf("%s leads nowhere", ref)
			}
		}
	}
	return node, true
}

// matches compares a value with the schema at a pointer.
func (c *contract) matches(what string, value any, names ...string) {
	c.t.Helper()
	for i, n := range names {
		names[i] = url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(n, "~", "~0"), "/", "~1"))
	}
	schema := testkit.Must(c.schemas.Compile("openapi.json#/" + strings.Join(names, "/")))(c.t)
	if err := schema.Validate(value); err != nil {
		c.t.Errorf("%s: %v", what, err)
	}
}

// ownHeader reports whether a header is specific to the service and must be
// documented wherever it occurs.
func ownHeader(name string) bool {
	return strings.HasPrefix(name, "X-Request") || strings.HasPrefix(name, "X-Rate") ||
		slices.Contains([]string{"Retry-After", "Www-Authenticate", "Etag", "Accept-Ranges", "Content-Range"}, name)
}

// holds checks that the status, the headers and the body of a response are as
// documented.
func (c *contract) holds(method, path string, res reply) {
	c.t.Helper()
	method = strings.ToLower(method)
	status := fmt.Sprint(res.StatusCode)
	name := fmt.Sprintf("%s %s %s", method, path, status)
	c.seen[name] = true
	if res.StatusCode >= 500 && bytes.Contains(res.body, []byte("nats")) {
		c.t.Errorf("%s tells clients the inner cause: %s", name, res.body)
	}
	at := []string{"paths", path, method, "responses", status}
	if _, ok := c.at(at...); !ok {
		c.t.Errorf("%s is not documented: %s", name, res.body)
		return
	}
	responses, _ := c.at(at[:4]...)
	if ref, ok := responses.(map[string]any)[status].(map[string]any)["$ref"].(string); ok {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	}
	documented := map[string]bool{}
	if headers, ok := c.at(append(at, "headers")...); ok {
		for header, spec := range headers.(map[string]any) {
			documented[http.CanonicalHeaderKey(header)] = true
			pointer := append(slices.Clone(at), "headers", header)
			if ref, ok := spec.(map[string]any)["$ref"].(string); ok {
				pointer = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			}
			h, _ := c.at(pointer...)
			value := res.Header.Get(header)
			if _, there := res.Header[http.CanonicalHeaderKey(header)]; !there {
				if h.(map[string]any)["required"] == true {
					c.t.Errorf("%s has no %s", name, header)
				}
				continue
			}
			c.matches(name+" "+header, value, append(pointer, "schema")...)
		}
	}
	for header := range res.Header {
		if ownHeader(header) && !documented[header] {
			c.t.Errorf("%s has an undocumented %s", name, header)
		}
	}
	content, ok := c.at(append(at, "content")...)
	if !ok {
		if len(res.body) != 0 {
			c.t.Errorf("%s has an undocumented body %s", name, res.body)
		}
		return
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	spec, ok := content.(map[string]any)[kind].(map[string]any)
	if !ok {
		c.t.Errorf("%s: content type %q is not documented", name, kind)
		return
	}
	if spec["schema"] == nil {
		return
	}
	var value any = string(res.body)
	if kind == "application/json" {
		var err error
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(res.body)); err != nil {
			c.t.Errorf("%s: %v", name, err)
			return
		}
	}
	c.matches(name, value, append(slices.Clone(at), "content", kind, "schema")...)
}
