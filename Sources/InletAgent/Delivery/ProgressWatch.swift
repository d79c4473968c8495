internal import InletCore
internal import InletPipelines

/// Says how far a delivery is: every 5 % or 5 s, whichever is later. Files that are done sooner have no such line.
struct ProgressWatch: Sendable {
    let ref: AgentEvent.JobRef
    let size: Int64
    let log: EventLog
    let heartbeat: Heartbeat

    /// Smaller files are not watched: they are over before there is anything to say.
    static let smallest: Int64 = 1 << 20

    private static let interval = Duration.seconds(5)

    func run(_ attempt: Attempt) async {
        var told: Int64 = 0
        var seen: Int64 = 0
        while (try? await Task.sleep(for: Self.interval)) != nil {
            let sent = attempt.bytesSent
            // A transfer that moves shows that the workers live, however long it takes.
            if sent != seen { heartbeat.beat(.workers) }
            seen = sent
            if (sent - told) * 20 >= size {
                told = sent
                log.emit(.transferProgress(ref, sent: sent, size: size))
            }
        }
    }
}
