internal import FoundationEssentials
internal import InletCore
internal import InletFleet
internal import InletLinux
internal import Synchronization

/// Shows what a successor needs of running deliveries, and asks whether claims are still this agent's. Requests that
/// come while a call is under way share the next one.
final class PlaceNotes: Sendable {
    /// New notes of a delivery.
    struct Change: Sendable {
        var file: Int64
        var delivery: Int64
        var notes: [String: [UInt8]]
        /// Whether its other notes go.
        var isReplacing: Bool
        /// Whether the fleet is asked although nothing has changed for a successor.
        var isAsked: Bool
    }

    /// All notes of a running delivery, and the notes that the fleet has.
    private struct Book {
        var notes: [String: [UInt8]]
        var told: [String: [UInt8]]?
        var file: Int64
        var work: Int64
    }

    private struct Question {
        var work: Int64
        var fence: Int64
        var notes: [UInt8]?
        var waiters: [Waiter<FleetError?>]
    }

    private struct State {
        var books: [Int64: Book] = [:]
        var questions: [Question] = []
        var isOver = false

        /// A call has one row for each claim: its later notes include all earlier ones.
        mutating func ask(_ hold: FleetPlaces.Hold, _ notes: [UInt8]?, _ waiter: Waiter<FleetError?>) {
            if let place = questions.firstIndex(where: { $0.work == hold.work && $0.fence == hold.fence }) {
                questions[place].notes = notes ?? questions[place].notes
                questions[place].waiters.append(waiter)
            } else {
                questions.append(Question(work: hold.work, fence: hold.fence, notes: notes, waiters: [waiter]))
            }
        }
    }

    private let state = Mutex(State())
    private let signal = WakeSignal()

    private static let batch = 500
    private static let over = FleetError(.away, "this agent is stopping")

    /// Returns when the fleet has what a successor needs, at once where that is what it has.
    ///
    /// - Parameters:
    ///   - before: the notes at the start of the attempt.
    ///   - shown: those of all notes that others may see.
    /// - Throws: `.fenced` where the claim is another's.
    func say(
        _ change: Change, of hold: FleetPlaces.Hold, before: () -> [String: [UInt8]],
        shown: ([String: [UInt8]]) -> [String: [UInt8]]
    ) async throws(FleetError) {
        let waiter = Waiter<FleetError?>()
        let told = state.withLock { state -> [String: [UInt8]]? in
            let known = state.books[change.delivery].flatMap { $0.work == hold.work ? $0 : nil }
            var book = known ?? Book(notes: before(), file: change.file, work: hold.work)
            book.notes = change.isReplacing ? change.notes : book.notes.merging(change.notes) { $1 }
            let now = shown(book.notes)
            state.books[change.delivery] = book
            let isNews = now != book.told ?? [:]
            guard isNews || change.isAsked else { return nil }
            state.ask(hold, isNews ? Self.text(now) : nil, waiter)
            return now
        }
        guard let told else { return }
        try await answer(waiter)
        state.withLock { $0.books[change.delivery]?.told = told }
    }

    /// - Parameter shown: for a successor, instead of what it was shown before; nil leaves that.
    /// - Throws: `.fenced` where the claim is another's.
    func ask(_ hold: FleetPlaces.Hold, showing shown: [String: [UInt8]]? = nil) async throws(FleetError) {
        let waiter = Waiter<FleetError?>()
        state.withLock { $0.ask(hold, shown.map(Self.text), waiter) }
        try await answer(waiter)
    }

    private func answer(_ waiter: Waiter<FleetError?>) async throws(FleetError) {
        if state.withLock(\.isOver) { throw Self.over }
        signal.raise()
        guard let answer = await waiter.wait() else { throw Self.over }
        if let answer { throw answer }
    }

    /// An attempt has ended: the journal has its notes for the next one.
    func forget(_ file: Int64) {
        state.withLock { state in state.books = state.books.filter { $0.value.file != file } }
    }

    /// Until the task is cancelled.
    func run(_ link: FleetLink) async {
        await signal.loop {
            let questions = state.withLock { state in
                let taken = Array(state.questions.prefix(Self.batch))
                state.questions.removeFirst(taken.count)
                return taken
            }
            if questions.isEmpty { return nil }
            await ask(questions, link)
            return .now
        }
        let left = state.withLock { state in
            state.isOver = true
            return state.questions
        }
        for waiter in left.flatMap(\.waiters) { waiter.resume(with: Self.over) }
    }

    private func ask(_ questions: [Question], _ link: FleetLink) async {
        var answers: [FleetError?]
        do throws(FleetError) {
            let refused = try await link.note(questions.map { ($0.work, $0.fence, $0.notes) }).refused
            answers = refused.map { $0.map { FleetError($0, "another agent has the work") } }
            if answers.count != questions.count { throw FleetError(.fault, "it does not answer for each claim") }
        } catch {
            answers = Array(repeating: error, count: questions.count)
        }
        for (question, answer) in zip(questions, answers) {
            for waiter in question.waiters { waiter.resume(with: answer) }
        }
    }

    // MARK: - As JSON

    private static func text(_ notes: [String: [UInt8]]) -> [UInt8] {
        JSON.note(of: notes.mapValues { Data($0) })
    }

    /// The notes that another agent left; none where they cannot be read.
    static func notes(_ text: [UInt8]?) -> [String: [UInt8]] {
        JSON.note(text, as: [String: Data].self)?.mapValues { Array($0) } ?? [:]
    }
}
