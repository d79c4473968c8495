/// The lines in which two texts differ, with some around them, as `diff -u` shows them.
package struct TextDiff: Sendable {
    package enum Mark: String, Sendable, Codable, CaseIterable {
        case same = " "
        case removed = "-"
        case added = "+"
        /// Lines that are equal are left out here.
        case gap = "…"
    }

    package struct Line: Sendable, Equatable {
        package var mark: Mark
        package var text: String
    }

    /// A text as it is compared, and its lines as they may be shown.
    package struct Side: Sendable {
        let lines: [String]
        let shown: [String]
    }

    private static let context = 3

    package static func lines(from old: Side, to new: Side) -> [Line] {
        let head = zip(old.lines, new.lines).prefix { $0 == $1 }.count
        let most = min(old.lines.count, new.lines.count) - head
        let tail = zip(old.lines.reversed(), new.lines.reversed()).prefix(most).prefix { $0 == $1 }.count
        let (removed, added) = changes(
            from: old.lines[head..<(old.lines.count - tail)], to: new.lines[head..<(new.lines.count - tail)])
        var all: [Line] = []
        var (before, after) = (0, 0)
        while before < old.lines.count || after < new.lines.count {
            if removed.contains(before) {
                all.append(Line(mark: .removed, text: old.shown[before]))
                before += 1
            } else if added.contains(after) {
                all.append(Line(mark: .added, text: new.shown[after]))
                after += 1
            } else {
                all.append(Line(mark: .same, text: new.shown[after]))
                (before, after) = (before + 1, after + 1)
            }
        }
        return folded(all)
    }

    /// Comparing needs time and memory with the square of the differences: beyond this everything counts as changed.
    private static let mostCompared = 2000

    private static func changes(
        from old: ArraySlice<String>, to new: ArraySlice<String>
    ) -> (removed: Set<Int>, added: Set<Int>) {
        guard max(old.count, new.count) <= mostCompared else { return (Set(old.indices), Set(new.indices)) }
        let changes = Array(new).difference(from: Array(old))
        return (
            Set(changes.removals.map { old.startIndex + $0.place }),
            Set(changes.insertions.map { new.startIndex + $0.place })
        )
    }

    private static func folded(_ all: [Line]) -> [Line] {
        var near: Set<Int> = []
        for (index, line) in all.enumerated() where line.mark != .same {
            near.formUnion(max(0, index - context)...min(all.count - 1, index + context))
        }
        var lines: [Line] = []
        for (index, line) in all.enumerated() {
            if near.contains(index) {
                lines.append(line)
            } else if lines.last?.mark != .gap {
                lines.append(Line(mark: .gap, text: ""))
            }
        }
        return lines
    }
}

extension CollectionDifference.Change {
    fileprivate var place: Int {
        switch self {
        case .insert(let offset, _, _), .remove(let offset, _, _): offset
        }
    }
}
