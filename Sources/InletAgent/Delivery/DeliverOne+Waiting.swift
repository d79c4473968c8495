internal import InletCore
internal import InletJournal
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
        return (
            .waiting(until: time, saying: saying),
            Report(event: .jobWaiting(ref, until: time, saying: saying, isRepeated: isRepeated))
        )
    }
}
