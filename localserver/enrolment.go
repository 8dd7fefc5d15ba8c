package localserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"hubbub/localserver/engine/voiceprint"
	"hubbub/protocol"
)

// maxLiveBody bounds the body of POST /v1/live: as many voiceprints as are
// allowed, and what any other request may have.
const maxLiveBody = maxBody + protocol.MaxVoiceprints*(protocol.MaxVoiceprint+1024)

// checkVoiceprints returns what is wrong with the voiceprints of a request.
func checkVoiceprints(e protocol.Enrolment) error {
	for i, p := range e.Voiceprints {
		if _, err := voiceprint.Parse(p.Voiceprint); err != nil {
			text := "is not a voiceprint, or it is damaged"
			if errors.Is(err, voiceprint.ErrOutdated) {
				text = "was made by another engine version; make it again from speech"
			}
			return protocol.Invalid(fmt.Sprintf("voiceprints[%d].voiceprint", i), "%s", text)
		}
	}
	return nil
}

// sealEnrolment encrypts the people of a stream with its token, of which the store has only a
// hash. Deleted bytes remain in the files of the store for a time: with the token gone, nobody
// can read them.
func sealEnrolment(token string, e protocol.Enrolment) []byte {
	plain, err := json.Marshal(e)
	if err != nil { // texts and finite numbers always marshal
		panic(err)
	}
	return enrolmentCipher(token).Seal(nil, nil, plain, nil)
}

// openEnrolment decrypts the people of a stream that is opened with its token.
func openEnrolment(token string, sealed []byte) (e protocol.Enrolment, err error) {
	if len(sealed) == 0 {
		return e, nil
	}
	plain, err := enrolmentCipher(token).Open(nil, nil, sealed, nil)
	if err == nil {
		err = json.Unmarshal(plain, &e)
	}
	if err != nil {
		err = fmt.Errorf("the enrolment of a stream cannot be read: %w", err)
	}
	return e, err
}

// enrolmentCipher is AES-256-GCM under a key that is made of a token, which is long and random.
func enrolmentCipher(token string) cipher.AEAD {
	key := sha256.Sum256([]byte("hubbub enrolment\x00" + token))
	block, _ := aes.NewCipher(key[:]) // the key has the right length
	aead, _ := cipher.NewGCMWithRandomNonce(block)
	return aead
}
