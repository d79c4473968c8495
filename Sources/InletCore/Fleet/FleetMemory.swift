/// This agent's identity in its fleet. The token is a secret.
package struct FleetIdentity: Sendable, Equatable, Codable {
    /// The agent's number there.
    package var agent: Int32
    package var name: String
    /// Six letters; keys that end in `_TAG` belong to this agent without a question.
    package var tag: String
    package var token: [UInt8]
    /// UUIDs of the journal and of the fleet.
    package var journal: String
    package var fleet: String
    /// The fleet has refused it as a copy's: nobody says hello with it any more, in this process or a later one. Ends with
    /// a new identity or token (`rejoin`).
    package var isUsedTwice = false

    package init(agent: Int32, name: String, tag: String, token: [UInt8], journal: String, fleet: String) {
        (self.agent, self.name, self.tag, self.token) = (agent, name, tag, token)
        (self.journal, self.fleet) = (journal, fleet)
    }
}

/// Without the token, wherever one is written.
extension FleetIdentity: CustomStringConvertible, CustomReflectable {
    package var description: String { name }
    package var customMirror: Mirror { Mirror(self, children: ["agent": agent, "name": name, "tag": tag]) }
}

/// An agent's memory of its fleet: the journal.
package protocol FleetMemory: Sendable {
    /// nil where the agent has not joined.
    func fleetIdentity() async throws -> FleetIdentity?

    /// - Parameter isFresh: begins to count hellos and marks anew.
    func keepFleetIdentity(_ identity: FleetIdentity?, isFresh: Bool) async throws

    /// Counts up, durably, before a process says hello.
    func nextHello() async throws -> Int64

    /// The highest mark that was heard.
    func fleetSeen() async throws -> Int64

    /// It only ever grows.
    func saw(mark: Int64) async throws
}
