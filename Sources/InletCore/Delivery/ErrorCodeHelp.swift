// length: one switch over all codes, so that one without a meaning does not compile
/// What the manual says about an error code.
package struct ErrorCodeHelp: Sendable {
    /// The usual consequence; a service's answer can lead to another.
    package enum Verdict: String, Sendable, CaseIterable {
        case retry
        case outage
        case credentials
        case local
        case fail
        case ended

        package var meaning: String {
            switch self {
            case .retry: "The attempt counts, and Inlet tries again after the route's `retry`."
            case .outage: "The destination pauses until it answers again; no attempt counts."
            case .credentials: "The destination pauses until its credentials change; no attempt counts."
            case .local: "This machine is the cause: the file waits, no attempt counts, and the destination stays up."
            case .fail: "The file fails; `inlet queue retry` sends it again."
            case .ended: "The delivery ends for a reason of its own, which the meaning explains."
            }
        }
    }

    package var verdict: Verdict
    /// A sentence about the cause.
    package var meaning: String
    /// An order to the reader; empty where nothing helps or nothing is needed.
    package var remedy: String

    init(_ verdict: Verdict, _ meaning: String, _ remedy: String = "") {
        (self.verdict, self.meaning, self.remedy) = (verdict, meaning, remedy)
    }
}

extension ErrorCode {
    package var help: ErrorCodeHelp {
        switch self {
        case .connectFailed, .nameNotFound, .timedOut, .stalled, .tlsFailed, .connectionLost, .insecureURL,
            .forbiddenURL, .redirected, .proxyRefused, .answerTooLarge:
            transportHelp
        case .badAnswer, .badRequest, .unauthorized, .conflict, .notFound, .throttled, .outOfCredits, .clockSkewed,
            .serverError:
            answerHelp
        case .badPartList, .missingETag, .foreignETag, .corrupted, .digestMismatch, .urlExpired, .uplinkTooSlow,
            .uploadGone, .tooLarge:
            uploadHelp
        case .sourceChanged, .sourceGone, .sourceUnreadable, .sourceForbidden, .notRegular, .badSidecar,
            .destinationFull, .destinationUnwritable, .destinationExists, .readBackDiffers, .nameTooLong:
            fileHelp
        case .rejected, .expired, .cancelled, .heldByLimit, .notConfigured, .outOfResources, .agentCrashed,
            .dispositionFailed, .fleetAway, .fleetKeyTaken, .internalFault:
            agentHelp
        }
    }

    private var transportHelp: ErrorCodeHelp {
        switch self {
        case .connectFailed:
            .init(
                .outage, "The server took no connection.", "Check that the server runs and that no firewall blocks it.")
        case .nameNotFound:
            .init(.outage, "The DNS has no such host name.", "Check the name's spelling and this machine's DNS.")
        case .timedOut:
            .init(
                .outage, "No connection, or no answer, came in time.",
                "Check that the server runs and that no firewall blocks it.")
        case .stalled:
            .init(.retry, "Bytes stopped moving during a transfer.", "Check the line, and proxies that buffer bodies.")
        case .tlsFailed:
            .init(
                .outage, "The TLS connection failed, or the certificate is not trusted.",
                "Check the certificate's name and dates, this machine's clock, and `ca_file`.")
        case .connectionLost: .init(.retry, "The connection broke off before the end.")
        case .insecureURL:
            .init(.fail, "The server gave a URL without TLS.", "Have the server give `https://` URLs.")
        case .forbiddenURL:
            .init(
                .fail, "The server gave a URL that Inlet must not ask, such as another host's.",
                "Check the service's public address, and the destination's rules for URLs.")
        case .redirected:
            .init(
                .fail, "The server redirected the request; Inlet follows no redirects.",
                "Correct the address or region.")
        case .proxyRefused:
            .init(.outage, "The proxy refused the request.", "Correct `user` and `password` of `proxy`.")
        default: .init(.fail, "The answer is larger than Inlet reads.", "Check that the URL leads to the service.")
        }
    }

    private var answerHelp: ErrorCodeHelp {
        switch self {
        case .badAnswer:
            .init(
                .retry, "The answer is not one that this service gives.",
                "Check the address, and any proxy that answers for the service.")
        case .badRequest:
            .init(
                .fail, "The service refused the request.", "Read the reason, and correct the route's `with` or `key`.")
        case .unauthorized:
            .init(.credentials, "The service refused the credentials.", "Update the keys; Inlet retries automatically.")
        case .conflict: .init(.retry, "Something else changed the same object or upload.")
        case .notFound:
            .init(
                .retry, "The bucket, the object or the upload does not exist.",
                "Create the bucket, or correct its name.")
        case .throttled: .init(.outage, "The service asked for fewer requests.", "Lower `workers` or `parallel_parts`.")
        case .outOfCredits:
            .init(.outage, "The account has no credits left.", "Buy credits, or wait for the next period.")
        case .clockSkewed:
            .init(.outage, "The clocks of this machine and the store differ.", "Set this machine's clock (NTP).")
        default: .init(.outage, "The service failed (HTTP 5xx).", "Check the service's own log.")
        }
    }

    private var uploadHelp: ErrorCodeHelp {
        switch self {
        case .badPartList:
            .init(.fail, "The API gave a wrong list of part URLs.", "Report it to the operator of the API.")
        case .missingETag:
            .init(.retry, "The store took a part and named no ETag.", "Have proxies pass the `ETag` header through.")
        case .foreignETag:
            .init(.fail, "The store's ETag is not an MD5.", "Set `verify: size` on this destination.")
        case .corrupted:
            .init(
                .retry, "The bytes at the destination differ from the file.",
                "Check memory and network if it happens again.")
        case .digestMismatch:
            .init(
                .retry, "The store computed another checksum than Inlet sent.",
                "Check memory and network if it happens again.")
        case .urlExpired:
            .init(
                .retry, "An upload URL expired before its part ended.",
                "Lower `parallel_parts` or `workers`, or check this machine's clock.")
        case .uplinkTooSlow:
            .init(
                .retry, "Upload URLs expired several times in a row.",
                "Lower `parallel_parts`, or have the API sign its URLs for longer.")
        case .uploadGone: .init(.retry, "The store no longer knows the upload; Inlet begins a new one.")
        default:
            .init(
                .fail, "The file is larger than the destination takes.",
                "Raise the limit there, or choose another destination.")
        }
    }

    private var fileHelp: ErrorCodeHelp {
        switch self {
        case .sourceChanged: .init(.ended, "The file changed after admission; Inlet admits it anew as it is now.")
        case .sourceGone: .init(.ended, "The file is no longer there.", "Put it back; Inlet admits it as a new file.")
        case .sourceUnreadable: .init(.local, "The file could not be read.", "Check the disk and the mount.")
        case .sourceForbidden:
            .init(.local, "The agent's user may not read the file.", "Give that user read permission.")
        case .notRegular: .init(.fail, "The path is a folder, a link or a device, not a regular file.")
        case .badSidecar: .init(.fail, "A sidecar file is not valid.", "Correct the sidecar, then retry the file.")
        case .destinationFull: .init(.outage, "The destination has no room.", "Make room, or raise the quota.")
        case .destinationUnwritable:
            .init(.outage, "The destination folder takes no files.", "Check its permissions and its mount.")
        case .destinationExists:
            .init(
                .fail, "Another file has this key, and `if_exists: fail` keeps it.",
                "Rename one of the two, then retry.")
        case .readBackDiffers:
            .init(.retry, "The copy read back differs from the file.", "Check the destination's disk.")
        default: .init(.fail, "The destination cannot hold a name of this length.", "Shorten the route's `key`.")
        }
    }

    private var agentHelp: ErrorCodeHelp {
        switch self {
        case .rejected: .init(.fail, "The route's `validate` or the service rejected the file.", "Read the reason.")
        case .expired:
            .init(
                .ended, "The file was not delivered within the route's `retry.expire`; Inlet deletes nothing.",
                "Send it with `inlet queue retry`.")
        case .cancelled: .init(.ended, "A person cancelled the delivery, or the agent is stopping.")
        case .heldByLimit: .init(.ended, "The bandwidth limit is 0; the delivery continues when it rises.")
        case .notConfigured:
            .init(.outage, "The configuration no longer has this destination.", "Add it again, or cancel the files.")
        case .outOfResources:
            .init(.local, "This machine has no memory or file descriptors left.", "Free some, or raise the limits.")
        case .agentCrashed:
            .init(
                .fail, "The agent ended several times while it sent this file.",
                "Read the log, then use `inlet queue retry`.")
        case .dispositionFailed:
            .init(
                .ended, "The source could not be moved or deleted; Inlet tries again every minute.", "Check its folder."
            )
        case .fleetAway:
            .init(
                .ended, "PostgreSQL is away and grants no key, and `when_away: wait` holds the file.",
                "Check the fleet's PostgreSQL with `inlet check`; the file continues when it is back.")
        case .fleetKeyTaken:
            .init(
                .ended, "The fleet refused 40 names in a row: the folder may be another agent's `prefix`.",
                "Change the route's `key`, or that `prefix`; Inlet asks again every 10 minutes.")
        default: .init(.local, "Inlet met a state that it does not expect.", "Report it, with the log line.")
        }
    }
}
