package layout

// proseWords are the words that a name of a speaker seldom has.
const proseWords = 3

// proseBeside asks if a column of few values has as many words as that taken for the text: the list may have a few
// sentences that very many voices read, and dates, hashes or names of files beside them.
func (e *evidence) proseBeside(with func(columns ...int) Layout) error {
	text, _ := e.v.columns[e.texts[len(e.texts)-1]].prose()
	for _, j := range e.names {
		if words, titled := e.v.columns[j].prose(); !titled && words >= max(proseWords, text) {
			other := with(j).Columns
			for _, t := range e.texts {
				other[t] = Unused
			}
			return e.question(e.reading(other), e.reading(with(e.texts...).Columns),
				"a column of few values has as many words as the others")
		}
	}
	return nil
}

// prose returns the mean number of words of the values that are kept, and whether most of them are names of persons.
func (c *column) prose() (words float64, titled bool) {
	if c.many {
		return c.mean, false
	}
	names := 0
	for v := range c.values {
		words += countWords(v)
		if isTitled(v) {
			names++
		}
	}
	return words / float64(max(1, len(c.values))), 2*names > len(c.values)
}
