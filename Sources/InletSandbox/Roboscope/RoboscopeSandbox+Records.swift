package import InletCore

extension RoboscopeSandbox {
    /// A space; it has no version, so the last writer wins.
    package struct Space: Sendable, Hashable {
        package var id: String
        package var key: String
        package var name: String
        package var description: String?
        package var modelGLBURL: String?
        package var modelUSDCURL: String?
        package var previewURL: String?
        package var scanURL: String?
        package var meta: SandboxJSON?
        package var created: WallTime
        package var updated: WallTime
        /// How many PATCH calls have changed it.
        package var changes: Int
    }

    /// One visit to a space; changes are checked against its version.
    package struct WorkSession: Sendable, Hashable {
        package var id: String
        package var spaceID: String
        package var type: String
        package var status: String
        /// As they were given.
        package var startedAt: String?
        package var completedAt: String?
        package var meta: SandboxJSON?
        /// From 1 on, one more at each change.
        package var version: Int64
        package var created: WallTime
        package var updated: WallTime
    }

    /// A marked area in a session.
    package struct Marker: Sendable, Hashable {
        package var id: String
        package var sessionID: String
        package var label: String?
        /// Four corners of three coordinates each, in metres.
        package var corners: [[Double]]
        package var color: String
        package var meta: SandboxJSON?
        package var customProps: SandboxJSON
        package var version: Int64
        package var created: WallTime
        package var updated: WallTime
    }

    /// A line of the audit trail.
    package struct Event: Sendable, Hashable {
        package var id: Int
        /// Such as `space.created`, `session.updated`, `marker.deleted`.
        package var action: String
        /// Of the object that it is about.
        package var object: String
        package var time: WallTime
    }
}
