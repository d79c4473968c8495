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

    /// Why a source could not be opened, as an error of its delivery.
    static func unopened(_ error: SystemError, _ file: FileRow) -> DeliveryError {
        if error.isMissing {
            // A volume that is not mounted has not lost its files.
            if RootPresence.isAway(file) {
                return DeliveryError(
                    .outage(after: .seconds(30)), .sourceGone,
                    "\(file.root.display) is not there or not mounted; its files are sent when it is back")
            }
            return DeliveryError(.sourceGone, .sourceGone, "\(error)")
        }
        if error.isNotRegular { return DeliveryError(.giveUp, .notRegular, "\(error)") }
        return DeliveryError(reading: error)
    }
}
