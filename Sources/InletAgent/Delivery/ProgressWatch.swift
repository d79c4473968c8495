internal import InletCore
internal import InletPipelines

/// Says that a delivery is under way, and how far it is: every 5 % or 5 s, whichever is later. Files that are done sooner,
/// and small ones, have no such line.
struct ProgressWatch: Sendable {
    let ref: AgentEvent.JobRef
    let size: Int64
    let log: EventLog
    let heartbeat: Heartbeat

    var interval = Duration.seconds(5)

    /// Of smaller files there are no lines: they have left at once, and only their answers can take long.
    static let smallest: Int64 = 1 << 20

    func run(_ attempt: Attempt) async {
        var told: Int64 = 0
        var pace = ProgressPace()
        // Its sleep throws when the attempt has ended.
        while (try? await Task.sleep(for: interval)) != nil {
            // A worker whose request waits lives, also where no byte moves for longer than the watchdog's time: a server may
            // take minutes to answer, and every request ends by its own time-outs. What is shown is that its threads run.
            heartbeat.beat(.workers)
            let sent = attempt.bytesSent
            if let step = attempt.progress {
                guard pace.isDue(step.percent, at: .now) else { continue }
                log.emit(.transferProgress(ref, sent: sent, size: size, step: step))
            } else if size > Self.smallest, (sent - told) * 20 >= size {
                told = sent
                log.emit(.transferProgress(ref, sent: sent, size: size))
            }
        }
    }
}
