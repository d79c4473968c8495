package import InletCore

/// What of the sandbox's behaviour differs from installation to installation; may be changed while it runs.
package struct GigHiveRules: Sendable {
    /// What the firewall in front (ModSecurity) does with bodies over the limit.
    package enum Firewall: Sendable {
        /// There is none: the application's own checks answer.
        case off
        /// The firewall of a standard installation, which detects only, but still ends such a request with 500.
        case detects
        /// 413.
        case blocks
    }

    /// UPLOAD_MAX_BYTES: bytes of one media file.
    package var maximumBytes: Int64
    /// The web server's limit for a form's body (Apache's LimitRequestBody), in bytes; nil = none.
    package var formLimit: Int64?
    package var firewall: Firewall
    /// A PATCH counts only when its whole body has come, as behind a firewall that reads it first; a cut one leaves the
    /// offset as it was.
    package var holdsBackPatches: Bool
    /// How long after the last byte a tus upload is known to finalize.
    package var hookDelay: Duration
    /// How long finalize waits for that.
    package var hookWait: Duration
    /// How long finalize works on a file; another finalize of the same upload fails in that time.
    package var finalizeTime: Duration
    package var guestTokens: [GuestToken]

    /// What `X-Upload-Token` may be, and the event that its uploads go to.
    package struct GuestToken: Sendable {
        package var token: Secret
        /// `YYYY-MM-DD`.
        package var eventDate: String
        package var orgName: String
        package var eventType: String

        package init(_ token: Secret, eventDate: String, orgName: String, eventType: String = "wedding") {
            self.token = token
            self.eventDate = eventDate
            self.orgName = orgName
            self.eventType = eventType
        }
    }

    package init(
        maximumBytes: Int64 = 6_442_450_944, formLimit: Int64? = 1 << 30, firewall: Firewall = .detects,
        holdsBackPatches: Bool = true, hookDelay: Duration = .zero, hookWait: Duration = .seconds(2),
        finalizeTime: Duration = .zero, guestTokens: [GuestToken] = []
    ) {
        self.maximumBytes = maximumBytes
        self.formLimit = formLimit
        self.firewall = firewall
        self.holdsBackPatches = holdsBackPatches
        self.hookDelay = hookDelay
        self.hookWait = hookWait
        self.finalizeTime = finalizeTime
        self.guestTokens = guestTokens
    }
}

/// The passwords of the three users that an installation has.
package struct GigHiveLogins: Sendable {
    package var admin: Secret
    package var uploader: Secret
    package var viewer: Secret

    package init(admin: Secret, uploader: Secret, viewer: Secret) {
        self.admin = admin
        self.uploader = uploader
        self.viewer = viewer
    }
}
