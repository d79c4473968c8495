package import InletCore

extension VOPISandbox {
    /// A job as the sandbox knows it, whatever it tells of it.
    package struct Job: Sendable, Hashable {
        package var id: String
        package var videoURL: String
        /// As a client is told it now.
        package var status: String
        /// The step it is in: `waiting`, `downloading` … `completed`; after a failure the one of the next try.
        package var step: String
        /// The body of the request that made it, as it came.
        package var received: SandboxJSON
        /// With the defaults that were filled in.
        package var config: SandboxJSON
        package var callbackURL: String?
        package var error: String?
        /// Tries that have failed.
        package var failures: Int
        package var isCharged: Bool
    }

    /// A video that was PUT, also when its object is gone since.
    package struct Video: Sendable, Hashable {
        package var key: String
        /// What `publicUrl` of its presign was.
        package var publicURL: String
        package var size: Int64
        package var sha256: Digest
        package var contentType: String
        /// How often a whole body came for this key.
        package var puts: Int
    }

    /// A picture of a job.
    package struct Picture: Sendable, Hashable {
        package enum Place: Sendable, Hashable {
            case frame(id: String)
            case image(key: String, version: String)
        }

        package var place: Place
        /// The object: its path holds the bytes that a download gives.
        package var object: StoredObject
        /// SHA-256 of the video that the picture was made from.
        package var source: Digest
    }

    /// What was done, as opposed to what was asked for; requests that were refused or met a fault before do not count.
    package struct Tally: Sendable, Hashable {
        package var presigns = 0
        /// Videos that arrived whole.
        package var puts = 0
        package var jobs = 0
        /// Credits that jobs have cost.
        package var charges = 0
        package var cancels = 0
        package var deletes = 0
        package var refreshes = 0

        package init() {}
    }

    /// What a login gives.
    package struct Session: Sendable {
        package var accessToken: Secret
        package var refreshToken: Secret
    }
}
