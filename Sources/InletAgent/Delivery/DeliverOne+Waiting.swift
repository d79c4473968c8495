internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines

extension DeliverOne {
    /// The destination works on it: how far that is, is remembered for `status`, and said now and then.
    func waits(
        _ ref: AgentEvent.JobRef, _ file: FileRow, _ delivery: DeliveryRow, until time: WallTime, saying: String?,
        _ attempt: Attempt
    ) -> (Settlement, Report) {
        if let step = attempt.progress, inFlight.note(step, of: delivery.id, at: .now) {
            log.emit(.transferProgress(ref, sent: attempt.bytesSent, size: file.identity.size, step: step))
        }
        let isRepeated = delivery.isBeingWorkedOn
        var report = Report(event: .jobWaiting(ref, until: time, saying: saying, isRepeated: isRepeated))
        report.destinationIsBack = hasTaken(ref)
        return (.waiting(until: time, saying: saying), report)
    }

    /// A limit of 0 has ended the attempt, which does not count: another has its worker, and it goes on where it was once the
    /// limit allows it.
    func sentBack(_ ref: AgentEvent.JobRef, _ delivery: DeliveryRow) -> (Settlement, Report) {
        let reason = "was sent back while a limit of bandwidth was 0"
        let error = DeliveryError(.cancelled, .heldByLimit, reason)
        return (
            .again(at: .now, countsAttempt: false, code: nil, reason: reason),
            Report(event: .jobRetry(ref, error, attempt: delivery.attempts, wait: .zero))
        )
    }

    /// Why a source could not be opened, as an error of its delivery.
    static func unopened(_ error: SystemError) -> DeliveryError {
        if error.isMissing { return DeliveryError(.sourceGone, .sourceGone, "\(error)") }
        if error.isNotRegular { return DeliveryError(.giveUp, .notRegular, "\(error)") }
        return DeliveryError(reading: error)
    }

    /// How long a file stays away whose removable volume is away: its return ends that.
    private static let awayPause = Duration.seconds(3600)

    /// The same error, unless it only says that the file's root is not there, or is another: a volume that is not mounted has
    /// not lost its files, and what is in its place is none of them.
    func present(_ error: DeliveryError, _ file: FileRow) -> DeliveryError {
        switch error.verdict {
        case .sourceGone, .sourceChanged: break
        default: return error
        }
        guard roots.isAway(file) else { return error }
        let isSoon = roots.isUnknown(file.root) || roots.hasMoved(file)
        let pause: Duration = isSoon ? .seconds(1) : file.volume == nil ? .seconds(30) : Self.awayPause
        return DeliveryError(
            .outage(after: pause), .sourceGone,
            "\(file.root.display) is not there or not mounted; its files are sent when it is back")
    }
}
