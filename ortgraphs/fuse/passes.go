package fuse

// fact is what holds of a graph after the pass that leaves it, until another pass ends it.
type fact int

const (
	ordered           fact = 1 << iota // nodes are after what they read
	recurrencesApart                   // no pass changes recurrences that a kernel computes
	scaledLast                         // powers of two multiply results of products in bf16
	partsJoined                        // sums of parts that are apart are a Concat
	biasedFlat                         // biases are added to products in the shape of these
	attentionApart                     // attention has nodes of its own, which no pass changes
	convolutionsFound                  // large convolutions are nodes of their own
	depthwiseFound                     // depthwise convolutions are nodes of their own
	resultsTurned                      // products write their results in the order that their readers want
	inMemoryOrder                      // nodes compute in the order of dimensions in which their operands are in memory
	rowsSplit                          // reductions run along rows of at most maxRow, or over outer dimensions
	biasesAdded                        // products add the biases that the library can add
	residualsAdded                     // products add the residuals that the library can add
	slicesFirst                        // other biases are added after the slices of their sums
	windowsShared                      // both gradients of a convolution read windows of one tensor
	thinSummed                         // products of few results and many terms are sums
	laidOut                            // the library takes the operands of products as they are in memory
	sidesAligned                       // large products have sides that are multiples of 16 bytes
	weightsTurned                      // so large products in f32 sum what are neighbours in memory
	repeated                           // what costs nothing is computed by each reader
	windowsFound                       // a Concat of windows is one read
	inlined                            // parts and slices are computed where they are read, if that costs nothing
	plansKnown                         // products for which the library chooses an algorithm are known
	grouped                            // each node is in a group, and groups have turns
	joined                             // no two groups can be joined with a gain
	reread                             // groups compute again what costs less than to read it
	summed                             // attention adds up the columns of its results
	batched                            // products that nothing reads wait for others of their form
)

// pass changes the graph, or the groups that become regions. It needs facts to be right or to find what it looks for.
type pass struct {
	name   string
	run    func(p *partition)
	needs  fact
	leaves fact
	ends   fact
}

// onGraph is a pass before there are groups.
func onGraph(f func(g *Graph)) func(p *partition) { return func(p *partition) { f(p.graph) } }

// passes are in the order in which Partition runs them. What Lower returns is ordered.
var passes = []pass{
	{name: "findRecurrences", run: onGraph(findRecurrences), needs: ordered, leaves: recurrencesApart},
	{name: "sinkScales", run: onGraph(sinkScales), needs: ordered, leaves: scaledLast},
	// Attention writes its gradients to their places in a Concat.
	{name: "joinParts", run: onGraph(joinParts), needs: ordered, leaves: partsJoined},
	// Attention knows the shapes of what it reads.
	{name: "flattenBiased", run: onGraph(flattenBiased), needs: ordered, leaves: biasedFlat},
	// The queries are then read in the result of a merged product. Copies stand behind all other nodes.
	{
		name: "findAttention", run: onGraph(findAttention), needs: scaledLast | partsJoined | biasedFlat,
		leaves: attentionApart, ends: ordered,
	},
	// Results of products are still rows of windows times weights.
	{name: "findConvolutions", run: onGraph(findConvolutions), needs: attentionApart, leaves: convolutionsFound},
	// The gradients of single weights are joined in a Concat, and nothing is in the order of memory yet.
	{
		name: "findDepthwise", run: onGraph(findDepthwise), needs: partsJoined | attentionApart, leaves: depthwiseFound,
	},
	{name: "swapResults", run: onGraph(swapResults), needs: attentionApart | convolutionsFound, leaves: resultsTurned},
	{name: "sinkTransposes", run: onGraph(sinkTransposes), needs: resultsTurned, leaves: inMemoryOrder},
	// Which dimensions are the innermost ones depends on the order in memory.
	{name: "splitReductions", run: onGraph(splitReductions), needs: inMemoryOrder, leaves: rowsSplit},
	// What reads a sum in another order than that of memory is a copy, which adds the bias.
	{name: "addBiases", run: onGraph(addBiases), needs: inMemoryOrder | biasedFlat, leaves: biasesAdded},
	{name: "addResiduals", run: onGraph(addResiduals), needs: biasesAdded, leaves: residualsAdded},
	{name: "sinkBiases", run: onGraph(sinkBiases), needs: biasesAdded, leaves: slicesFirst},
	{name: "shareWindows", run: onGraph(shareWindows), needs: inMemoryOrder, leaves: windowsShared},
	// Gradients of a convolution that makes one channel are products with its windows.
	{name: "sumThinProducts", run: onGraph(sumThinProducts), needs: windowsShared, leaves: thinSummed},
	// No pass after it makes a product.
	{
		name: "layoutProducts", run: onGraph(layoutProducts),
		needs:  residualsAdded | slicesFirst | windowsShared | thinSummed,
		leaves: laidOut,
	},
	// Which side is that of rows in memory is known.
	{name: "alignProducts", run: onGraph(alignProducts), needs: laidOut, leaves: sidesAligned},
	{name: "turnWeights", run: onGraph(turnWeights), needs: laidOut, leaves: weightsTurned},
	// What is in memory in any case depends on the products and their copies.
	{name: "recompute", run: onGraph(recompute), needs: laidOut | sidesAligned | weightsTurned, leaves: repeated},
	// The slices of a window are of one tensor, of which inlineOperands would make copies.
	{name: "findWindows", run: onGraph(findWindows), needs: windowsShared, leaves: windowsFound},
	{name: "inlineOperands", run: onGraph(inlineOperands), needs: repeated | windowsFound, leaves: inlined},
	{name: "findPlanned", run: onGraph(findPlanned), needs: residualsAdded | sidesAligned, leaves: plansKnown},
	{
		name: "makeGroups", run: (*partition).makeGroups,
		needs:  recurrencesApart | attentionApart | rowsSplit | inlined | plansKnown,
		leaves: grouped | ordered,
	},
	{name: "joinReaders", run: (*partition).joinReaders, needs: grouped | ordered},
	// The second time, it joins what the first has brought together.
	{name: "joinNeighbours", run: (*partition).joinNeighbours, needs: grouped | ordered},
	{name: "joinNeighbours", run: (*partition).joinNeighbours, needs: grouped | ordered, leaves: joined},
	// What a group computes is known, and none is computed again yet.
	{name: "joinDepthwise", run: joinDepthwise, needs: joined | depthwiseFound},
	// Its nodes are in groups, and in the list of the graph only later.
	{name: "derive", run: (*partition).derive, needs: joined, leaves: reread, ends: ordered},
	// Groups that still have a cast and a sum alone would read a result of attention for nothing else.
	{name: "sumResults", run: sumResults, needs: reread, leaves: summed},
	{name: "batchProducts", run: (*partition).batchProducts, needs: summed, leaves: batched | ordered},
}
