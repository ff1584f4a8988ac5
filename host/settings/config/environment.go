package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// envPrefix and the flag's name in capitals make the name of an environment variable.
const envPrefix = "XTTS_HOST_"

func envName(f *pflag.Flag) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// notSettings are variables with the prefix that are not refused: those of tests, and those that Kubernetes sets for a
// service of the name xtts-host.
var notSettings = regexp.MustCompile(`^XTTS_HOST_(TEST_.*|SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_.*)?)$`)

// readEnv fills settings that the flags left open. An empty variable is ignored; a variable of no flag is refused.
func (s *Set) readEnv(environ []string) (err error) {
	env := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if value != "" && strings.HasPrefix(name, envPrefix) && !notSettings.MatchString(name) {
			env[name] = value
		}
	}
	var names []string
	s.flags.VisitAll(func(f *pflag.Flag) {
		name := envName(f)
		names = append(names, name)
		value := env[name]
		delete(env, name)
		if value != "" && f.Name == pluginData && err == nil {
			err = s.addFolders(value, fromEnv)
			if err != nil {
				err = fmt.Errorf("%s=%s: %w", name, value, err)
			}
			return
		}
		if value == "" || !s.open(f, fromEnv) || err != nil {
			return
		}
		if e := f.Value.Set(value); e != nil {
			err = fmt.Errorf("%s=%s: %w", name, value, reason(f, e))
		}
		s.origins[f.Name] = fromEnv
	})
	if err != nil || len(env) == 0 {
		return err
	}
	unknown := slices.Min(slices.Collect(maps.Keys(env)))
	variable := func(flag string) string { return envName(s.flags.Lookup(flag)) }
	advice := unknownName(s.flags, unknown, strings.TrimPrefix(unknown, envPrefix), names, variable)
	return hint.Errorf(cmp.Or(advice, "the variable of a setting is "+envPrefix+" and its flag in capitals"),
		"unknown environment variable %s", unknown)
}
