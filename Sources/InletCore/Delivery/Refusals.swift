/// Refusals that are some file's own fault, or everybody's.
///
/// Two files in a row with the same one: it is the destination's. A file is to blame for one only when it hears it again after
/// the destination has shown that it is well, because another file was delivered, or a probe was good.
package struct Refusals: Sendable, Equatable {
    package enum Judgement: Sendable, Equatable {
        /// The first of its kind: the destination is to be asked.
        case first
        /// Another file has just heard the same.
        case shared
        /// This file alone, while the destination is well.
        case files
    }

    /// Who was refused last.
    private struct Last: Equatable {
        var file: Int64
        var code: ErrorCode
    }

    /// Refused, and nothing good was heard since.
    private var waiting: Set<Int64> = []
    /// Refused once, before the destination has shown that it is well.
    private var warned: Set<Int64> = []
    private var last: Last?

    /// More files than this begin anew.
    private static let most = 1000

    package init() {}

    /// Takes note of a refusal that would end `file`.
    package mutating func judge(_ file: Int64, _ code: ErrorCode) -> Judgement {
        if warned.contains(file) { return .files }
        wait(file)
        return isShared(file, code) ? .shared : .first
    }

    /// Takes note of a refusal that ends nothing yet. - Returns: whether another file has just heard the same.
    package mutating func isShared(_ file: Int64, _ code: ErrorCode) -> Bool {
        defer { last = Last(file: file, code: code) }
        guard let last else { return false }
        return last.file != file && last.code == code
    }

    /// A delivery that was under way when the destination went down was refused too.
    package mutating func wait(_ file: Int64) {
        if waiting.count + warned.count >= Self.most { clear() }
        waiting.insert(file)
    }

    package mutating func delivered(_ file: Int64) {
        last = nil
        if waiting.isEmpty, warned.isEmpty { return }
        waiting.remove(file)
        warned.remove(file)
        isWell()
    }

    /// A probe was good, or a delivery.
    package mutating func isWell() {
        last = nil
        warned.formUnion(waiting)
        waiting = []
    }

    /// The destination itself was away: what the files heard says nothing about them.
    package mutating func clear() { self = Refusals() }
}
