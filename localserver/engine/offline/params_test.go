package offline

import (
	"reflect"
	"strings"
	"testing"
)

// Each parameter can be set by its name, and changes alone.
func TestSetParams(t *testing.T) {
	fields := reflect.TypeFor[Params]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		var p Params
		if err := p.Set(strings.ToLower(name), 0.25); err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(p)
		for j := range fields.NumField() {
			if got := v.Field(j).Float(); (got == 0.25) != (i == j) {
				t.Errorf("after Set of %s, %s is %v", name, fields.Field(j).Name, got)
			}
		}
	}
	if err := new(Params).Set("volume", 1); err == nil || !strings.Contains(err.Error(), `"volume"`) {
		t.Errorf("a parameter that does not exist: %v", err)
	}
}
