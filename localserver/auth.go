package localserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// principal is who a request comes from.
type principal struct {
	account    string
	subscribed bool
}

type principalKey struct{}

// keyring knows the API keys: the static ones, as hashes only, and those that
// are signed.
type keyring struct {
	static [][sha256.Size]byte
	signed *signedKeys
}

func newKeyring(static []string, signed *signedKeys) *keyring {
	k := &keyring{signed: signed}
	for _, key := range static {
		k.static = append(k.static, sha256.Sum256([]byte(key)))
	}
	return k
}

// identify tells whose key it is. It compares hashes, of equal length, with
// all static keys and in constant time: how long it takes tells nothing of a
// key, not even its length.
func (k *keyring) identify(key string) (principal, bool) {
	sum := sha256.Sum256([]byte(key))
	found := 0
	for i := range k.static {
		found |= subtle.ConstantTimeCompare(sum[:], k.static[i][:])
	}
	if found == 1 {
		return principal{account: DefaultAccount, subscribed: true}, true
	}
	return k.signed.identify(key)
}

// require lets only requests with a known key through; who it is can be asked
// with caller. The answer does not say what was wrong with a key.
func (k *keyring) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ok := bearer(r.Header)
		if ok {
			var who principal
			if who, ok = k.identify(key); ok {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, who)))
				return
			}
		}
		refuse(w, r, http.StatusUnauthorized, "A valid API key is needed: Authorization: Bearer <API_KEY>")
	})
}

// subscribers lets only requests of an account with a subscription through.
func subscribers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !caller(r.Context()).subscribed {
			refuse(w, r, http.StatusPaymentRequired, "A subscription is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer reads the credential; the scheme's name is in any case (RFC 9110).
// Two credentials are none.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, key, ok := strings.Cut(values[0], " ")
	key = strings.TrimLeft(key, " ")
	return key, ok && key != "" && strings.EqualFold(scheme, "Bearer")
}

// caller is who passed require.
func caller(ctx context.Context) principal {
	who, _ := ctx.Value(principalKey{}).(principal)
	return who
}
