import Foundation
import InletCore
import InletFleet
import InletJournal
import InletLinux
import SystemPackage

/// How an agent that does not run comes into its fleet, back into it, and out of it.
struct FleetJoining {
    let address: PostgresAddress
    private let fleet: FleetSettings
    /// Of the command line.
    private let secretFile: String?

    /// Prints why the database's address cannot be used and exits with 78.
    init(_ fleet: FleetSettings, secretFile: String? = nil) throws {
        address = try PostgresAddress.orExit(fleet.url, allowsUnverified: fleet.allowsUnverified)
        (self.fleet, self.secretFile) = (fleet, secretFile)
    }

    private static var about: [String: String] { ["host": ProcessSetup.hostName] }

    /// As an agent that the fleet does not know.
    func join(_ journal: Journal) async throws -> FleetIdentity {
        let (name, own) = (fleet.agentName, UUID().uuidString.lowercased())
        let identity = try await join(as: name) { secret in
            try FleetMembership.join(address, secret: secret, name: name, journal: own, seen: 0, about: Self.about)
        }
        try await journal.keepFleetIdentity(identity, isFresh: true)
        return identity
    }

    /// With a journal that is older than the fleet knows, or that the fleet has forgotten.
    func rejoin(_ former: FleetIdentity, _ journal: Journal) async throws -> FleetIdentity {
        let seen = try await journal.fleetSeen()
        let identity = try await join(as: former.name) { secret in
            try FleetMembership.rejoin(address, former, secret: secret, seen: seen, about: Self.about)
        }
        try await journal.keepFleetIdentity(identity, isFresh: false)
        return identity
    }

    private func join(
        as name: String, _ body: @Sendable ([UInt8]) throws -> FleetIdentity
    ) async throws -> FleetIdentity {
        let secret = try secret()
        return try await FleetConnection.run(at: address, agent: name) {
            do {
                return try body(secret)
            } catch let error as FleetError where error.code == .unknownAgent {
                throw ExitStatus.failed.saying(
                    "fleet: the join secret is wrong or closed at \(address.display); make another with "
                        + "'inlet fleet secret'")
            } catch let error as FleetError where error.code == .argument {
                // A name is one agent's for ever, also that of a retired one.
                throw ExitStatus.failed.saying(
                    "\(error.sentence(.init(server: address.display, agent: name))); set another fleet.name, then run "
                        + "'inlet fleet join', or 'inlet fleet rejoin --new-identity' where this agent had joined. If the "
                        + "former one's journal is lost, retire that one by 'inlet fleet takeover'")
            }
        }
    }

    func leave(_ identity: FleetIdentity, _ journal: Journal) async throws {
        try await FleetConnection.run(at: address, agent: identity.name) { [address] in
            try FleetMembership.leave(address, identity)
        }
        try await journal.keepFleetIdentity(nil, isFresh: true)
    }

    /// The join secret. Prints where it can be and exits with 78 where there is none.
    private func secret() throws -> [UInt8] {
        guard let file = secretFile.map({ FilePath.absolute($0) }) ?? fleet.joinFile else {
            throw ExitStatus.configuration.saying(
                "fleet: the join secret is missing; give --secret-file FILE, or set fleet.join_file")
        }
        do throws(SystemError) {
            let text = String(decoding: try DurableFile.read(file, limit: 4096), as: UTF8.self)
            return Array(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8)
        } catch {
            throw ExitStatus.configuration.saying("fleet: \(error). Put the secret of 'inlet fleet secret' there")
        }
    }
}
