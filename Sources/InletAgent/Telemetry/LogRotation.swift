internal import InletCore
package import SystemPackage

/// When a log file is set aside, and which name becomes which.
package struct LogRotation: Sendable, Equatable {
    /// What is done to the files, in this order; 0 is the log itself, 1 the newest that was set aside.
    package enum Step: Sendable, Equatable {
        case rename(from: Int, to: Int)
        case remove(Int)
    }

    /// Bytes; nil = never.
    package var maxSize: Int64?
    /// How many that were set aside are kept; from 1.
    package var keep: Int

    package init(maxSize: Int64?, keep: Int) {
        self.maxSize = maxSize
        self.keep = keep
    }

    /// Whether a log of `size` bytes is set aside before `count` more are added. An empty one never is, whatever is added.
    package func isDue(size: Int64, adding count: Int) -> Bool {
        guard let maxSize else { return false }
        return size > 0 && size + Int64(count) > maxSize
    }

    /// Each rename frees the name that the next one takes, so that none is lost when the process dies between two: what is
    /// left then is a gap, and the next time only the files before the first gap move. The oldest is only written over where
    /// there is no gap. Files beyond `keep`, of a time when it was larger, go as far as their numbers have no gap.
    package func steps(_ isThere: (Int) -> Bool) -> [Step] {
        var gap = 1
        while gap < keep, isThere(gap) { gap += 1 }
        var steps = (0..<gap).reversed().map { Step.rename(from: $0, to: $0 + 1) }
        var beyond = keep + 1
        while isThere(beyond), steps.count < 2000 {
            steps.append(.remove(beyond))
            beyond += 1
        }
        return steps
    }

    /// `PATH`, `PATH.1`, `PATH.2` …
    package static func path(_ log: FilePath, _ number: Int) -> FilePath {
        number > 0 ? FilePath(bytes: log.bytes + Array(".\(number)".utf8)) : log
    }
}
