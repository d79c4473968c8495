package import SystemPackage

/// Events for notifications.
package enum NotificationEvent: String, Sendable, CaseIterable {
    case delivered
    /// A file failed for good, expired, or was missing when its turn came.
    case failed
    case rejected
    case batchDone = "batch_done"
    case destinationDown = "destination_down"
    case destinationUp = "destination_up"
    /// Every destination has proved all files of a removable volume, which can now be removed.
    case volumeDone = "volume_done"
    /// A watched folder is paused: it is not mounted, or another one is in its place.
    case rootPaused = "root_paused"

    /// The events of a receiver without `on:`: all but single deliveries.
    package static let usual: [NotificationEvent] = [
        .failed, .rejected, .batchDone, .destinationDown, .destinationUp, .volumeDone, .rootPaused,
    ]
}

/// An entry of `notify:`: a receiver and its events.
package struct NotifySettings: Sendable, Equatable {
    package enum Receiver: Sendable, Equatable {
        /// A URL for POST requests. Many are as good as a password: anyone with the URL can send to it.
        case webhook(Secret)
        /// A program and its arguments, run without a shell.
        case exec([String])
    }

    /// Unique.
    package var name: String
    package var receiver: Receiver
    /// Signs webhook requests.
    package var secret: Secret?
    package var events: Set<NotificationEvent>
    /// Only files and batches of these routes; empty for all.
    package var routes: [String] = []
    package var timeout: Duration
    /// Whether plain HTTP may leave this machine.
    package var allowsHTTP = NotifyKeys.all.allowHTTP.standard
    /// CA certificates (PEM) to trust for the webhook, in addition to the system's.
    package var caFile: FilePath?
    /// The positions of its keys, for later errors.
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

/// `ping_url:` — a dead man's switch: a URL that is requested regularly while the agent is healthy.
package struct PingSettings: Sendable, Equatable {
    /// A credential: anyone with the URL can ping in this agent's name.
    package var url: Secret
    package var interval: Duration
    /// Whether plain HTTP may leave this machine.
    package var allowsHTTP: Bool
    /// CA certificates (PEM) to trust for the server, in addition to the system's.
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
