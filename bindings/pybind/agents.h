// What the bindings of both learning agents share: settings as a dict of str by name, and the class
// of a trained agent. An agent's Config has Settings, Set and Check in its namespace
// (agents/training/settings.h).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "agents/training/settings.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"

namespace mallocgame::python {

// Each binds the classes of one agent.
void BindMuZero(pybind11::module_& module);
void BindEgrl(pybind11::module_& module);

using AgentSettings = std::map<std::string, std::string>;

// Settings that are left out are those of the preset, or of `config`.
template <class Config>
Config ConfigOf(const AgentSettings& settings, Config config = {}) {
  if (const auto preset = settings.find("preset"); preset != settings.end())
    RaiseIfError(Set(config, preset->first, preset->second));
  for (const auto& [name, value] : settings) {
    if (name != "preset") RaiseIfError(Set(config, name, value));
  }
  RaiseIfError(Check(config));
  return config;
}

template <class Config>
AgentSettings SettingsOf(const Config& config) {
  AgentSettings settings;
  for (const training::SettingText& setting : Settings(config))
    settings[setting.name] = setting.value;
  return settings;
}

// Adds the function `name`, which lists all settings of a Config.
template <class Config>
void BindSettings(pybind11::module_& module, const char* name) {
  module.def(
      name,
      [] {
        std::vector<std::tuple<std::string, std::string, std::string, std::string>> all;
        for (const training::SettingText& s : Settings(Config()))
          all.emplace_back(s.name, s.value, s.allowed, s.meaning);
        return all;
      },
      "All settings, each as (name, default, allowed, meaning).");
}

// A trained agent as Python holds it.
template <class Agent>
struct AgentHandle {
  std::shared_ptr<const Agent> agent;
};

// Adds the class `name` with what all trained agents have: they are made of a checkpoint, know
// their settings, and are a solver that is called `solver`.
template <class Agent>
pybind11::class_<AgentHandle<Agent>> BindAgentClass(pybind11::module_& module, const char* name,
                                                    const char* doc, const std::string& solver) {
  namespace py = pybind11;
  using Handle = AgentHandle<Agent>;
  py::class_<Handle> bound(module, name, doc);
  bound
      .def("__reduce_ex__", RefusePickling(std::string("pickle the mallocgame.agents.") + name +
                                           " that has it, or its checkpoint"))
      .def(py::init([](const py::bytes& checkpoint) {
             const absl::string_view bytes = ViewOf(checkpoint);
             return Handle{ValueOrRaise(WithoutGil([&] { return Agent::Load(bytes); }))};
           }),
           py::arg("checkpoint"),
           "checkpoint: the bytes of a trainer's save(). InvalidInputError: it is not one.")
      .def(
          "solver",
          [solver](const Handle& handle, double portfolio_share) {
            return NamedSolver{
                solver,
                [agent = handle.agent](const SolveProblem& problem, const SolveLimits& limits) {
                  return agent->Solve(problem, limits);
                },
                portfolio_share,
                {handle.agent->game()}};
          },
          py::arg("portfolio_share"),
          "The agent as a solver. portfolio_share: its share of a portfolio's time, on one core.")
      .def_property_readonly(
          "settings", [](const Handle& handle) { return SettingsOf(handle.agent->config()); },
          "All settings as text, by name.");
  return bound;
}

}  // namespace mallocgame::python
