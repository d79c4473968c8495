import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// The plan of a share's file, on its way from the agent that lists to the one that delivers.
struct PlacePlanTests {
    private static let addresses = ["r2": "address-1", "lib": "address-2", "spaces": "address-3"]
    /// The other agent's names.
    private static let names = ["address-1": "bucket", "address-2": "library", "address-3": "models"]

    private static func file(
        to destinations: [String], storages: [String: String] = [:], _ change: (inout Plan) -> Void = { _ in }
    ) -> FileAdmission {
        var plan = Plan(
            route: "all", category: "videos", key: "v/a.mov", mediaType: "video/quicktime", with: ["f": "1"],
            destinations: destinations, onSuccess: .archive, onFailure: .quarantine)
        (plan.labels, plan.priority, plan.ownLabels) = (["type": "clip"], .high, ["type"])
        (plan.dedupe, plan.receipts) = (.skip, .folder)
        change(&plan)
        let identity = FileIdentity(size: 7, modified: 1_000, changed: 2_000, inode: 42, device: 1)
        var file = FileAdmission(
            FoundFile(root: "/mnt/media", path: "a.mov", identity: identity), plan: plan, lanes: [:], uptimes: [:])
        if !storages.isEmpty { file.storages = storages }
        return file
    }

    private static func terms() throws -> AdmissionTerms {
        let log = try EventLog(nil)
        let destinations = names.values.sorted().map { Destination.scripted($0, ScriptedPipeline(), smallLimit: 4) }
        return DestinationRegistry(destinations, paused: [], uptimes: [:], workers: 1, log: log).terms()
    }

    @Test(
        arguments: [
            (["r2"], [:], [["address-1"]]), (["r2", "lib"], [:], [["address-1"], ["address-2"]]),
            (["spaces"], ["spaces": "r2"], [["address-1", "address-3"]]),
            (["lib", "r2", "spaces"], ["spaces": "r2"], [["address-2"], ["address-1", "address-3"]]),
        ] as [([String], [String: String], [[String]])])
    func `each leading delivery is a plan of its own, with its registrations`(
        destinations: [String], storages: [String: String], expected: [[String]]
    ) throws {
        let file = Self.file(to: destinations, storages: storages) { $0.otherKeys = ["lib": "v/A (1).mov"] }
        let plans = try #require(PlacePlan.all(of: file) { Self.addresses[$0] })
        #expect(plans.map { $0.steps.map(\.address) } == expected)
        for plan in plans {
            let isLibrary = plan.steps[0].address == "address-2"
            #expect(plan.deliveries == expected.count)
            #expect(plan.steps.allSatisfy { $0.key == (isLibrary ? "v/A (1).mov" : "v/a.mov") })
            #expect(try JSON.decode(try JSON.encode(plan)) as PlacePlan == plan)
        }
    }

    @Test func `the other agent has the same admission under its own names`() throws {
        let file = Self.file(to: ["spaces"], storages: ["spaces": "r2"])
        var plan = try #require(PlacePlan.all(of: file) { Self.addresses[$0] }?.first)
        #expect(plan.inode == 42 && plan.priority == 0 && plan.policy.isOfPlace)
        #expect(plan.policy.dedupe == .off && plan.policy.manifest == nil)
        plan.rename(to: "v/a_2.mov")
        let found = try #require(
            plan.admission(of: file.arrival, terms: try Self.terms()) { Self.names[$0] })
        #expect(
            found.steps.steps == [DeliverySteps.Step("bucket"), DeliverySteps.Step("models", after: "bucket")])
        let there = try #require(found.plan)
        #expect(there.key(at: "bucket") == "v/a_2.mov" && there.key(at: "models") == "v/a_2.mov")
        #expect(there.with == ["f": "1"] && there.labels == ["type": "clip"] && there.ownLabels == ["type"])
        #expect(there.route == "all" && there.category == "videos" && there.priority == .high)
        #expect(there.onSuccess == .archive && there.onFailure == .quarantine && there.receipts == .folder)
        #expect(there.dedupe == .off && there.manifest == nil)
        #expect(found.lanes == ["bucket": .big, "models": .big])
    }

    @Test func `a destination without an address, or that is not configured here, has no plan`() throws {
        let file = Self.file(to: ["r2", "lib"])
        #expect(PlacePlan.all(of: file) { $0 == "r2" ? "address-1" : nil } == nil)
        let plan = try #require(PlacePlan.all(of: file) { Self.addresses[$0] }?.first)
        #expect(plan.admission(of: file.arrival, terms: try Self.terms()) { _ in nil } == nil)
    }
}
