/// "Did you mean …?"
package enum Suggestion {
    /// The candidate that `word` most likely means; nil if none is near. Near means at most two typing errors (one in
    /// words of up to three letters), or a third of the length. Ignores case.
    package static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased())
        guard letters.count <= 100 else { return nil }
        let limit = letters.count <= 3 ? 1 : max(2, letters.count / 3)
        var best: (distance: Int, name: String)?
        for candidate in candidates where abs(candidate.count - letters.count) <= limit {
            let slips = distance(letters, Array(candidate.lowercased()))
            if slips <= limit, slips < best?.distance ?? .max { best = (slips, candidate) }
        }
        return best?.name
    }

    /// The same as the end of a sentence, `; did you mean 'store'?`; empty if no candidate is near.
    package static func hint(_ word: String, in candidates: some Sequence<String>) -> String {
        nearest(to: word, in: candidates).map { "; did you mean '\($0)'?" } ?? ""
    }

    /// Insertions, deletions, substitutions and swaps of neighbours (Damerau–Levenshtein, optimal string alignment).
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, character) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (character == other ? 0 : 1))
                if row > 0, column > 0, character == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
