package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hubbub/protocol"
	"hubbub/protocol/client"
	"hubbub/protocol/hint"
)

const (
	// maxSkew is the largest difference of two clocks that is not reported.
	maxSkew = 30 * time.Second
	// minDaysLeft is the shortest remaining validity of a certificate, in days,
	// that is not reported.
	minDaysLeft = 14
)

func (c *checker) lookUp(ctx context.Context, s *Stage) error {
	probe, err := c.Client.Probe()
	if err != nil {
		return err
	}
	c.probe, c.proxy = probe, probe.Proxy
	addresses, err := probe.LookUp(ctx)
	if err != nil {
		return err
	}
	s.Seen = probe.Host() + " is " + strings.Join(addresses[:min(len(addresses), 4)], ", ")
	if len(addresses) == 1 && addresses[0] == probe.Host() {
		s.Seen = probe.Host() + " is an address: nothing to look up"
	}
	s.Details = map[string]any{"addresses": addresses}
	return nil
}

func (c *checker) connect(ctx context.Context, s *Stage) error {
	to, err := c.probe.Dial(ctx)
	if err != nil {
		return err
	}
	s.Seen = "connected to " + to
	return nil
}

func (c *checker) tls(ctx context.Context, s *Stage) error {
	info, err := c.probe.TLS(ctx)
	if errors.Is(err, client.ErrNoTLS) {
		s.Seen = "none: the address begins with http://"
		s.notice("key and audio are sent unencrypted", "Use https:// unless the service is on this machine.")
		return nil
	}
	if info.Version != "" && !info.NotAfter.IsZero() {
		left := int(math.Floor(time.Until(info.NotAfter).Hours() / 24))
		s.Seen = info.String()
		if left >= 0 {
			s.Seen += fmt.Sprintf(", %d days left", left)
		}
		s.Details = map[string]any{"version": info.Version, "issuer": info.Issuer, "subject": info.Subject,
			"days_left": left, "not_after": info.NotAfter.UTC().Format(time.RFC3339), "name_matches": info.NameMatches, "verified": info.Verified}
		switch {
		case err != nil:
		case !info.Verified:
			s.notice("the certificate would not be accepted without --insecure", "Trust its authority with --ca FILE instead.")
		case left < minDaysLeft:
			s.notice(fmt.Sprintf("the certificate expires in %d days", left), "The operator of the service should renew it.")
		}
	}
	if timed, ok := errors.AsType[net.Error](err); ok && timed.Timeout() && c.proxy == "" { // also context.DeadlineExceeded
		return hint.Add(err, "The port accepts connections, but does not respond in TLS: check the port; a firewall may drop the packets, or a VPN the large ones (try a smaller MTU), or the service is overloaded; if it really has no TLS, write http://.")
	}
	return err
}

func (c *checker) key(ctx context.Context, s *Stage) error {
	if c.NoKey != nil {
		return c.NoKey
	}
	out, info, err := c.Client.TestOnce(ctx)
	s.Details = map[string]any{"status": info.Status, "protocol": info.Proto, "via": info.Via}
	skew, known := info.Skew(time.Now())
	if known {
		s.Details["clock_skew_s"] = math.Round(skew.Seconds())
		c.skew = skew
	}
	if err != nil {
		return c.keyError(info, err)
	}
	s.Seen = fmt.Sprintf("%s over %s", out.Status, info.Proto)
	if out.Message != "" {
		s.Seen += fmt.Sprintf(", %q", protocol.Clean(out.Message, 80))
	}
	if skew.Abs() > maxSkew {
		s.notice(c.skewText(), "Set this machine's clock (NTP): the validity of keys and certificates depends on it.")
	}
	return nil
}

// skewText says how the clocks differ; "" if they do not differ much.
func (c *checker) skewText() string {
	if c.skew.Abs() <= maxSkew {
		return ""
	}
	direction := "ahead of"
	if c.skew < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("this machine's clock is %v %s the service's", c.skew.Abs().Round(time.Second), direction)
}

// keyError finds the cause of a failure of the first request, where the status
// does not say it.
func (c *checker) keyError(info client.ResponseInfo, err error) error {
	if info.Status == http.StatusUnauthorized {
		if end, ok := keyExpiry(c.Key); ok && end.Before(time.Now()) {
			return hint.Errorf("Get a new API key.", "%w; the key expired on %s", err, end.UTC().Format(time.RFC3339))
		}
		if skew := c.skewText(); skew != "" {
			return hint.Errorf("Set this machine's clock (NTP), then check the API key: it is wrong or expired.", "%w; %s", err, skew)
		}
	}
	return err
}

// keyExpiry is the expiry time of a key that is a JWT (RFC 7519, 4.1.4).
func keyExpiry(key string) (time.Time, bool) {
	var claims jwt.RegisteredClaims
	_, _, _ = jwt.NewParser().ParseUnverified(key, &claims) // a signature of another kind is no matter
	if claims.ExpiresAt == nil {
		return time.Time{}, false
	}
	return claims.ExpiresAt.Time, true
}

func (c *checker) create(ctx context.Context, s *Stage) error {
	live, err := c.Client.CreateOnce(ctx, nil)
	if err != nil {
		return err
	}
	c.live = live
	c.secrets.Learn(live.URL)
	at := "an address that cannot be parsed"
	if u, err := url.Parse(live.URL); err == nil {
		at = u.Scheme + "://" + u.Host
	}
	s.Seen = fmt.Sprintf("id %s at %s", protocol.Clean(live.ID, 64), protocol.Clean(at, 200))
	s.Details = map[string]any{"id": protocol.Clean(live.ID, 64)}
	return nil
}

func (c *checker) open(ctx context.Context, s *Stage) error {
	opened, err := c.Client.OpenStream(ctx, c.live.URL)
	if err == nil {
		s.Seen = "open"
		c.stream = receive(opened)
		return nil
	}
	if response, ok := errors.AsType[*client.ResponseError](err); ok && response.Status == http.StatusUnauthorized {
		return hint.Add(err, "The new token of the stream is not accepted: it is used up (something in between opened the address first), or another server responds there (serve: --public-url).")
	}
	return err
}

func (c *checker) status(ctx context.Context, s *Stage) error {
	status, err := c.Client.StreamStatus(ctx, c.live.ID)
	if response, ok := errors.AsType[*client.ResponseError](err); ok && response.Status == http.StatusNotFound {
		return hint.Add(err, "Another server responds at this address than the one that had the stream, as behind a load balancer, or the service has no such operation: show this to its operator.")
	}
	if err != nil {
		return err
	}
	s.Seen = fmt.Sprintf("the service says %q", protocol.Clean(status.Status, 40))
	s.Details = map[string]any{"status": protocol.Clean(status.Status, 40)}
	if status.Status != protocol.StatusDone {
		s.notice(fmt.Sprintf("expected %q after a normal close", protocol.StatusDone), "Other services may use other words; with hubbub serve, see the server's log.")
	}
	return nil
}
