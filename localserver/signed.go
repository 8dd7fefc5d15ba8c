package localserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// grant is what a signed address allows: one method on one object until a
// moment.
type grant struct {
	method  string // GET or PUT
	account string
	name    string // of the object, within the account
	expires time.Time
}

// signer seals grants into addresses and opens them again. All nodes of a
// cluster share its key, so an address works on every one of them.
type signer struct{ key []byte }

// sealed is an opaque text: a MAC, then the grant. It holds no secret, but
// whoever has it has what it grants.
const (
	grantVersion = 1
	// grantHead is version, method, expiry in seconds, length of the account.
	grantHead = 1 + 1 + 8 + 2
	// maxSealed bounds the text of an address that is looked at, in bytes.
	maxSealed = 1024
)

// sealing has one spelling for every value: a changed text is another one.
var sealing = base64.RawURLEncoding.Strict()

func (s signer) seal(g grant) string {
	payload := make([]byte, 0, grantHead+len(g.account)+len(g.name))
	payload = append(payload, grantVersion, g.method[0])
	payload = binary.BigEndian.AppendUint64(payload, uint64(g.expires.Unix()))
	payload = binary.BigEndian.AppendUint16(payload, uint16(len(g.account)))
	payload = append(append(payload, g.account...), g.name...)
	return sealing.EncodeToString(append(s.mac(payload), payload...))
}

// open tells what a text grants to a method at a moment. Everything but a text
// of seal, for that method and still good, is false, whatever is wrong with it.
func (s signer) open(text, method string, now time.Time) (grant, bool) {
	if len(text) > maxSealed {
		return grant{}, false
	}
	raw, err := sealing.DecodeString(text)
	if err != nil || len(raw) < sha256.Size+grantHead {
		return grant{}, false
	}
	mac, payload := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(mac, s.mac(payload)) { // in constant time
		return grant{}, false
	}
	// What follows is our own writing.
	account := int(binary.BigEndian.Uint16(payload[10:]))
	g := grant{method: http.MethodGet, expires: time.Unix(int64(binary.BigEndian.Uint64(payload[2:])), 0)}
	if payload[1] == http.MethodPut[0] {
		g.method = http.MethodPut
	}
	rest := payload[grantHead:]
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if payload[0] != grantVersion || account > len(rest) || g.method != method || !now.Before(g.expires) {
		return grant{}, false
	}
	g.account, g.name = string(rest[:account]), string(rest[account:])
	return g, true
}

func (s signer) mac(payload []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte("hubbub media address\x00"))
	h.Write(payload)
	return h.Sum(nil)
}
