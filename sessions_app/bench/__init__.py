"""The benchmark behind `manage.py bench`: a whole installation of its own, agents that load it, and meters.

installation   Postgres, broker, echo engine and web processes in a temporary home
meters         CPU, memory, threads and connections of processes; bytes of tables
conversation   what one agent sends: its whole history each turn
client         HTTP towards the server under test
rig            one web server with everything that measures it
load           many agents at a time
sizes          how much of everything: quick, default, full
measurements   one question a file
report         the table

A tool for people; nothing on the serving path imports it.
"""
