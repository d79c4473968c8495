package import SystemPackage

/// Events that a receiver can be notified of.
package enum NotificationEvent: String, Sendable, CaseIterable {
    case delivered
    /// A file has failed for good, has expired, or was gone before its turn.
    case failed
    case rejected
    case batchDone = "batch_done"
    case destinationDown = "destination_down"
    case destinationUp = "destination_up"
    /// All of a removable volume is proved by every destination: it can be taken out.
    case volumeDone = "volume_done"
    /// A watched folder is not what it was, or not mounted: it is paused.
    case rootPaused = "root_paused"

    /// The events of a receiver without `on:`: all but single deliveries.
    package static let usual: [NotificationEvent] = [
        .failed, .rejected, .batchDone, .destinationDown, .destinationUp, .volumeDone, .rootPaused,
    ]
}

/// One entry of `notify:` — a receiver, and the events it gets.
package struct NotifySettings: Sendable, Equatable {
    package enum Receiver: Sendable, Equatable {
        /// An address that takes POSTs. Many are as good as a password: whoever knows one can write there.
        case webhook(Secret)
        /// A program and its arguments, as they are: no shell sees them.
        case exec([String])
    }

    /// Unique.
    package var name: String
    package var receiver: Receiver
    /// Signs what a webhook gets.
    package var secret: Secret?
    package var events: Set<NotificationEvent>
    /// Only files and batches of these; empty = of all.
    package var routes: [String] = []
    package var timeout: Duration
    /// Whether plain http may leave this machine.
    package var allowsHTTP = NotifyKeys.all.allowHTTP.standard
    /// CA certificates (PEM) that a webhook's server is checked against, besides the system's.
    package var caFile: FilePath?
    /// Where its keys stand, for errors that are found later.
    package var positions: [String: SourcePosition] = [:]
    package var position = SourcePosition(line: 1, column: 1)

    package init(
        name: String, receiver: Receiver, secret: Secret? = nil,
        events: Set<NotificationEvent> = Set(NotificationEvent.usual),
        timeout: Duration = NotifyKeys.all.timeout.standard
    ) {
        self.name = name
        self.receiver = receiver
        self.secret = secret
        self.events = events
        self.timeout = timeout
    }
}

/// `ping_url:` — a dead man's switch: an address that is requested regularly while the agent is well.
package struct PingSettings: Sendable, Equatable {
    /// A credential: whoever knows it can ping in this agent's name.
    package var url: Secret
    package var interval: Duration
    /// Whether plain http may leave this machine.
    package var allowsHTTP: Bool
    /// CA certificates (PEM) that the server is checked against, besides the system's.
    package var caFile: FilePath?
    package var position: SourcePosition

    package init(
        url: Secret, interval: Duration, allowsHTTP: Bool = ConfigKeys.all.pingAllowHTTP.standard,
        caFile: FilePath? = nil,
        position: SourcePosition = SourcePosition(line: 1, column: 1)
    ) {
        self.url = url
        self.interval = interval
        self.allowsHTTP = allowsHTTP
        self.caFile = caFile
        self.position = position
    }
}
